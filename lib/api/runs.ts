import { batchProgressShape } from '#lib/directory/batches/status.ts'
import { newSeals, replaceSeals, sealedShape } from '#lib/directory/payouts/seals.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { runRequest, startRun } from '#lib/relay/run.ts'
import { requireRuns } from '#lib/relay/run-terms.ts'
import { EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const parameters = { id: { description: 'id of the batch', example: EXAMPLE.batchId } }
const { txHash: _, paidAt: __, ...sealed } = { ...PAYOUT_EXAMPLE, status: 'ready', encryptedAmount: EXAMPLE.seal }

export const RUN_OPERATIONS = inGroup('Batches', [
  operation({
    id: 'replaceSeals',
    route: 'POST /batches/{id}/seals',
    caller: 'employer',
    extension: true,
    summary: 'Replace the sealed amounts of payouts',
    description: [
      'For payouts that are `ready` or `failed`, while no run of the batch is unfinished: before the first run if the',
      'amounts were not sealed to a channel yet, and before a second one. Either every seal is replaced or none.',
    ].join(' '),
    parameters,
    body: {
      schema: newSeals,
      example: { seals: [{ payoutId: EXAMPLE.payoutId, encryptedAmount: EXAMPLE.seal }] },
    },
    response: { description: 'The payouts', schema: sealedShape, example: { payouts: [sealed] } },
    refusals: ['batch-not-found', 'payout-not-found', 'payout-locked', 'run-unfinished'],
    handle: (context) => replaceSeals(context, { ...context.params, ...context.body }),
  }),
  operation({
    id: 'startRun',
    route: 'POST /batches/{id}/run',
    caller: 'employer',
    extension: true,
    summary: 'Have the relay pay a batch from your delegations',
    description: [
      'The relay pays every payout that is `ready` or `failed` from the amounts that the account of the session has',
      'delegated to its channels. `signature` is the SEP-53 signature of the manifest’s message, by a signer who reaches the',
      'medium threshold alone; each relay checks it again before it pays. Repeating the request is safe. `errors` of a 409',
      'says what is missing: `payoutId` or `channel`, and a `reason`.',
    ].join(' '),
    parameters,
    body: { schema: runRequest, example: { signature: EXAMPLE.runSignature } },
    requires: async ({ settings: { token }, network, batch, sponsor }, { session, db }) => {
      if (session.kind !== 'ledger') throw new Refusal('wallet-required', 'runs need a wallet session')
      if (!batch || !sponsor || token === undefined) throw new Refusal('runs-not-wired')
      await requireRuns(db, token)
      return { batch, network, token, limits: sponsor.limits }
    },
    response: {
      description: 'The progress of the batch, whose run has been queued, unless there was none to start',
      schema: batchProgressShape,
      example: { status: 'ready', settledCount: 0, failedCount: 0, payoutCount: 1, run: { status: 'running' } },
    },
    refusals: ['wallet-required', 'runs-not-wired', 'batch-not-found', 'run-not-ready'],
    handle: ({ ready, ...context }) => startRun({ ...context, ...ready }, { ...context.params, ...context.body }),
  }),
])
