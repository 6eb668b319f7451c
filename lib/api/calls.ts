import { Refusal } from '#lib/refusal/refusal.ts'
import { findChannels } from '#lib/relay/channel-state.ts'
import { readMarginLedgers } from '#lib/relay/run-terms.ts'
import type { Service } from '#lib/server/services.ts'
import type { CallRules } from '#lib/transfers/call-table.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'
import { requirePayer, signedRequest, sponsorSigned, TRANSFER_REFUSALS, transferShape } from './transfers.ts'

export const CALL_OPERATIONS = inGroup('Transfers', [
  operation({
    id: 'sponsorCall',
    extension: true,
    waitsForLedger: true,
    route: 'POST /calls',
    caller: 'session',
    summary: 'Sponsor the network fee of another signed call of the confidential token',
    description: [
      'The inner transaction is a single `register`, `merge`, `set_spender` or `revoke_spender` of the account of the',
      'session, signed like a transfer. An account registers under the auditor of the deployment, and delegates to a',
      'channel of `GET /relay`, for at least `marginLedgers` and at most 518,400 ledgers. Fee, quota, waiting and repeats',
      'are those of `POST /transfer`. The account must exist: a fee bump does not pay its minimum reserve.',
    ].join(' '),
    body: { schema: signedRequest, example: { signedXDR: 'AAAAAgAAAABqvH4zLJ5FMzK86cKuG8B3x…' } },
    requires: ({ settings }, { session }) => {
      const payer = requirePayer(session)
      if (settings.calls.functions.size === 0) throw new Refusal('calls-not-sponsored')
      return payer
    },
    response: {
      description: 'The call was applied',
      schema: transferShape,
      example: { hash: EXAMPLE.hash, status: 'SUCCESS' },
    },
    // A call pays no payout.
    refusals: [...TRANSFER_REFUSALS.filter((code) => code !== 'reconciling'), 'calls-not-sponsored'],
    failure: 'transfer failed',
    advice: 'send the same `signedXDR` again',
    handle: async ({ service, ready: payer, body }) =>
      await sponsorSigned(service, { payer, signedXDR: body.signedXDR }, async () => ({
        calls: await readCallRules(service),
      })),
  }),
])

async function readCallRules({ settings, network, database }: Service): Promise<CallRules> {
  const db = await database()
  const channels = settings.token === undefined ? [] : await findChannels(db, settings.token)
  return {
    ...settings.calls,
    channels: new Set(channels.map(({ address }) => address)),
    marginLedgers: await readMarginLedgers(db, network),
  }
}
