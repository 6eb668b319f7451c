import { xdr } from '@stellar/stellar-sdk'
import type { RefusalReason } from '#lib/refusal/sponsor-refusal.ts'
import type { Call } from '#lib/transfers/call-table.ts'
import {
  channel,
  contractAddress,
  data,
  payee,
  payer,
  scAddress,
  sponsor,
  stranger,
} from '../support/inner-transaction.ts'

const source = scAddress(payer.publicKey())
const spender = scAddress(channel.publicKey())
const u32 = (value: number) => xdr.ScVal.scvU32(value)
const own = { owner: null, to: payer.publicKey() }
const toChannel = { owner: null, to: channel.publicKey() }

/** Each sponsored function with valid arguments, and what the service reads from them. The auditor is number 7. */
export const VALID_CALLS: { name: string; args: xdr.ScVal[]; call: Call }[] = [
  { name: 'register', args: [source, u32(7), data], call: { kind: 'register', ...own, auditorId: 7 } },
  { name: 'merge', args: [source], call: { kind: 'merge', ...own } },
  {
    name: 'set_spender',
    args: [source, spender, u32(2000), data],
    call: { kind: 'set_spender', ...toChannel, liveUntilLedger: 2000 },
  },
  { name: 'revoke_spender', args: [source, spender], call: { kind: 'revoke_spender', ...toChannel } },
  {
    name: 'confidential_transfer_from',
    args: [source, scAddress(stranger.publicKey()), scAddress(payee.publicKey()), data],
    call: { kind: 'delegated', owner: stranger.publicKey(), to: payee.publicKey() },
  },
]

interface InvalidCall {
  name: string
  what: string
  args: xdr.ScVal[]
  reason: RefusalReason
}

/** Each valid call with one argument missing, one too many, and one of another type. */
const misshapen: InvalidCall[] = VALID_CALLS.flatMap(({ name, args }) => [
  { name, what: 'an argument is missing', args: args.slice(0, -1), reason: 'arguments' as const },
  { name, what: 'an argument too many', args: [...args, data], reason: 'arguments' as const },
  ...args.map((_, index) => ({
    name,
    what: `argument ${index} has another type`,
    args: args.with(index, xdr.ScVal.scvU64(2000n)),
    reason: 'arguments' as const,
  })),
  { name, what: 'another account is the source', args: args.with(0, spender), reason: 'not-payer' as const },
])

const [register, , setSpender, revoke, delegated] = VALID_CALLS.map(({ args }) => args) as [
  xdr.ScVal[],
  xdr.ScVal[],
  xdr.ScVal[],
  xdr.ScVal[],
  xdr.ScVal[],
]
const foreign = [stranger.publicKey(), sponsor.publicKey(), payer.publicKey(), contractAddress('a contract')]

export const INVALID_CALLS: InvalidCall[] = [
  ...misshapen,
  { name: 'register', what: 'another auditor', args: register.with(1, u32(0)), reason: 'auditor' },
  ...foreign.flatMap((address): InvalidCall[] => [
    {
      name: 'set_spender',
      what: `spender ${address}`,
      args: setSpender.with(1, scAddress(address)),
      reason: 'spender',
    },
    { name: 'revoke_spender', what: `spender ${address}`, args: revoke.with(1, scAddress(address)), reason: 'spender' },
  ]),
  {
    name: 'confidential_transfer_from',
    what: 'the escrow of an address of the service',
    args: delegated.with(1, scAddress(sponsor.publicKey())),
    reason: 'own-address',
  },
]
