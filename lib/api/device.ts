import { Refusal } from '#lib/refusal/refusal.ts'
import { inGroup, operation } from './operation.ts'

/**
 * Refuses an operation that needs a key on the user's device.
 * @throws Refusal `not-wired`
 */
function notWired(what: string, commands: string): never {
  const where = 'run it from the command-line client tooling, on the device that holds the keys'
  throw new Refusal('not-wired', `${what} is not wired to the API: ${where}: ${commands}`)
}

const shared = { caller: 'session', selfContained: true } as const

export const DEVICE_OPERATIONS = inGroup('On your device', [
  operation({
    ...shared,
    id: 'withdraw',
    route: 'POST /withdraw',
    summary: 'Withdraw (client tooling only)',
    refusals: ['not-wired'],
    requires: () => notWired('withdraw', '`npm run -s wallet -- withdraw`'),
    handle: async ({ ready }) => ready,
  }),
  operation({
    ...shared,
    id: 'disclose',
    route: 'POST /auditor/disclose',
    summary: 'Disclose to an auditor (client tooling only)',
    refusals: ['not-wired'],
    requires: () =>
      notWired(
        'auditor disclosure',
        '`npm run -s auditor -- disclose` (an auditor) or `npm run -s wallet -- disclose` (an account)',
      ),
    handle: async ({ ready }) => ready,
  }),
])
