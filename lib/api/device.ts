import { Refusal } from '#lib/http/refusal.ts'
import { operation } from './operation.ts'

/** The 501 of an operation that takes a key which only the user's device holds. */
function notWired(what: string): never {
  const where = 'run it from the command-line client tooling, on the device that holds the keys'
  throw new Refusal('not-wired', `${what} is not wired to the API: ${where}`)
}

const shared = { method: 'POST', group: 'On your device', caller: 'session', selfContained: true } as const

export const DEVICE_OPERATIONS = [
  operation({
    ...shared,
    id: 'withdraw',
    path: '/withdraw',
    summary: 'Withdraw: never done here',
    refusals: ['not-wired'],
    requires: () => notWired('withdraw'),
    handle: async ({ ready }) => ready,
  }),
  operation({
    ...shared,
    id: 'disclose',
    path: '/auditor/disclose',
    summary: 'Disclose to an auditor: never done here',
    refusals: ['not-wired'],
    requires: () => notWired('auditor disclosure'),
    handle: async ({ ready }) => ready,
  }),
]
