import { batchProgressShape } from '#lib/directory/batches/status.ts'
import { newSeals, replaceSeals, sealedShape } from '#lib/directory/payouts/seals.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { approvalQuery, approvalShape, approvalViewShape, readApproval } from '#lib/relay/approval.ts'
import { runRequest, startRun } from '#lib/relay/run.ts'
import { requireRuns } from '#lib/relay/run-terms.ts'
import type { Service } from '#lib/server/services.ts'
import { EXAMPLE, PAYOUT_EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const parameters = { id: { description: 'id of the batch', example: EXAMPLE.batchId } }
const { txHash: _, paidAt: __, ...sealed } = { ...PAYOUT_EXAMPLE, status: 'ready', encryptedAmount: EXAMPLE.seal }

const MANIFEST = [
  'confidential-payroll-run/1',
  'Test SDF Network ; September 2015',
  EXAMPLE.contract,
  EXAMPLE.batchId,
  EXAMPLE.employer,
  `delegation ${EXAMPLE.payee} 60400`,
  `payout ${EXAMPLE.payoutId} ${EXAMPLE.contractorId} ${EXAMPLE.payee} ${EXAMPLE.payee} ${EXAMPLE.hash}`,
  '',
].join('\n')

const APPROVAL_EXAMPLE = {
  status: 'waiting' as const,
  account: EXAMPLE.employer,
  message: `Run batch ${EXAMPLE.batchId} on Test SDF Network ; September 2015: 1 payouts, manifest ${EXAMPLE.hash}`,
  manifest: MANIFEST,
  weight: 1,
  needed: 2,
  signers: [
    { signer: EXAMPLE.employer, weight: 1, signed: true, signature: EXAMPLE.runSignature },
    { signer: EXAMPLE.payee, weight: 1, signed: false },
  ],
  count: 1,
  payees: [
    {
      payoutId: EXAMPLE.payoutId,
      contractorId: EXAMPLE.contractorId,
      name: 'Ada',
      address: EXAMPLE.payee,
    },
  ],
}

/** @throws Refusal `runs-not-wired` */
async function requireWired({ settings: { token }, network, batch, sponsor, database }: Service) {
  if (!batch || !sponsor || token === undefined) throw new Refusal('runs-not-wired')
  await requireRuns(await database(), token)
  return { batch, network, token, limits: sponsor.limits }
}

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
    caller: 'user',
    extension: true,
    summary: 'Have the relay pay a batch from your delegations',
    description: [
      'The relay pays every payout that is `ready` or `failed` from the amounts that the account has delegated to its channels.',
      '`signature` is the SEP-53 signature of the manifest’s message by a signer of that account. The run starts once the weights of',
      'those who have signed reach the medium threshold; until then, `approval` says how far it is. Each relay checks the signatures',
      'again before it pays. The employer sends the first one; then the wallet of any signer of the account may send others. Repeating the request is safe.',
      '`errors` of a 409 says what is missing: `payoutId` or `channel`, and a `reason`.',
    ].join(' '),
    parameters,
    body: { schema: runRequest, example: { signature: EXAMPLE.runSignature, payer: EXAMPLE.employer } },
    requires: requireWired,
    response: {
      description: 'The progress of the batch, whose run has been queued, unless there was none to start',
      schema: batchProgressShape.extend({
        approval: approvalShape.optional().meta({ description: 'while signatures are missing' }),
      }),
      example: { status: 'ready', settledCount: 0, failedCount: 0, payoutCount: 1, run: { status: 'running' } },
    },
    refusals: ['wallet-required', 'runs-not-wired', 'batch-not-found', 'run-not-ready'],
    handle: ({ ready, ...context }) => startRun({ ...context, ...ready }, { ...context.params, ...context.body }),
  }),
  operation({
    id: 'getApproval',
    route: 'GET /batches/{id}/approval',
    caller: 'user',
    extension: true,
    summary: 'See what is to be signed for a run, and who has signed',
    description: [
      'For the employer, and for the wallet of any signer of the account that pays. Compare the manifest with your own list, and the',
      'amounts with its seals, before you sign: `approveRun` of the package does. Once the run has started, it has what was signed.',
    ].join(' '),
    parameters,
    query: { schema: approvalQuery, example: { payer: EXAMPLE.employer } },
    requires: requireWired,
    response: {
      description:
        'The manifest, its message, the payees without amounts, and the signers with their weights on the ledger now',
      schema: approvalViewShape,
      example: APPROVAL_EXAMPLE,
    },
    refusals: ['wallet-required', 'runs-not-wired', 'batch-not-found', 'run-not-ready'],
    handle: ({ ready, ...context }) => readApproval({ ...context, ...ready }, { ...context.params, ...context.query }),
  }),
])
