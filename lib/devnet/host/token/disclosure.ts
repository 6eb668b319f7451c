import type { xdr } from '@stellar/stellar-sdk'
import { bytes, struct } from '../scval.ts'
import type { Payload } from './call-data.ts'

/** The fields of a payload that the events of interface 0.8.0 have: all but the commitments. */
const DISCLOSED = {
  transfer: [
    'r_e_point',
    'v_tilde',
    'sigma',
    'b_tilde',
    'v_tilde_aud_r',
    'r_tilde_aud_r',
    'v_tilde_aud_s',
    'b_tilde_aud_s',
    'r_tilde_aud_s',
  ],
  withdraw: ['r_e_point', 'sigma', 'b_tilde', 'b_tilde_aud_s', 'r_tilde_aud_s'],
} as const

export function disclosed(
  event: keyof typeof DISCLOSED,
  payload: Payload,
  besides: Record<string, xdr.ScVal> = {},
): xdr.ScVal {
  const fields = DISCLOSED[event].map((name) => [name, bytes(payload[name] ?? new Uint8Array())])
  return struct({ ...besides, ...Object.fromEntries(fields) })
}
