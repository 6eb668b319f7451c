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

type InvalidCall = [name: string, what: string, args: xdr.ScVal[], reason: RefusalReason]

/** Each valid call with one argument missing, one too many, and one of another type. */
const misshapen = VALID_CALLS.flatMap(({ name, args }): InvalidCall[] => [
  [name, 'an argument is missing', args.slice(0, -1), 'arguments'],
  [name, 'an argument too many', [...args, data], 'arguments'],
  ...args.map((_, index): InvalidCall => {
    return [name, `argument ${index} has another type`, args.with(index, xdr.ScVal.scvU64(2000n)), 'arguments']
  }),
  [name, 'another account is the source', args.with(0, spender), 'not-payer'],
])

const argsOf = (name: string) => VALID_CALLS.find((one) => one.name === name)?.args ?? []
const foreign = [stranger.publicKey(), sponsor.publicKey(), payer.publicKey(), contractAddress('a contract')]
const ofTheService = argsOf('confidential_transfer_from').with(1, scAddress(sponsor.publicKey()))

export const INVALID_CALLS: InvalidCall[] = [
  ...misshapen,
  ['register', 'another auditor', argsOf('register').with(1, u32(0)), 'auditor'],
  ...['set_spender', 'revoke_spender'].flatMap((name) =>
    foreign.map((address): InvalidCall => {
      return [name, `spender ${address}`, argsOf(name).with(1, scAddress(address)), 'spender']
    }),
  ),
  ['confidential_transfer_from', 'the escrow of an address of the service', ofTheService, 'own-address'],
]
