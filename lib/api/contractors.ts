import { z } from 'zod'
import { changeContractor, removeContractor, requireOwnFields } from '#lib/directory/contractors/changes.ts'
import { contractorsQuery, findContractor, listContractors } from '#lib/directory/contractors/contractors.ts'
import { createContractor } from '#lib/directory/contractors/creation.ts'
import { importContractors } from '#lib/directory/contractors/import.ts'
import { presentCreatedContractor, presentImport } from '#lib/directory/contractors/repeated-creation.ts'
import {
  contractorChanges,
  contractorRow,
  contractorRows,
  contractorShape,
  contractorsShape,
  importShape,
  newContractor,
  removedShape,
} from '#lib/directory/contractors/schema.ts'
import { isEmployer } from '#lib/directory/users.ts'
import { CONTRACTOR_EXAMPLE, EXAMPLE, PAGE_EXAMPLE } from './examples.ts'
import { inGroup, operation, respondWithPage } from './operation.ts'

const parameters = { id: { description: 'id of the contractor', example: EXAMPLE.contractorId } }
const { name, email, address, externalId } = CONTRACTOR_EXAMPLE

export const CONTRACTOR_OPERATIONS = inGroup('Contractors', [
  operation({
    id: 'listContractors',
    route: 'GET /contractors',
    caller: 'employer',
    summary: 'List your contractors, newest first',
    query: { schema: contractorsQuery, example: { ...PAGE_EXAMPLE, status: 'ready', q: 'ada', externalId } },
    response: {
      description: 'Up to 1,000 contractors, or `limit`',
      schema: contractorsShape,
      example: { contractors: [CONTRACTOR_EXAMPLE] },
      paged: 'link and total',
    },
    handle: async (context) => {
      const page = await listContractors(context, context.query)
      return respondWithPage(context.request, page, { contractors: page.items })
    },
  }),
  operation({
    id: 'createContractor',
    route: 'POST /contractors',
    caller: 'founder',
    summary: 'Add a contractor',
    description: '`ready` if the address is registered with the confidential token, else `invited`.',
    body: { schema: newContractor, example: { name, email, address, externalId } },
    response: { description: 'The contractor', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: [
      'email-taken',
      'address-taken',
      'external-id-taken',
      'contractor-not-found',
      'contractors-full',
      'organisation-dissolved',
    ],
    idempotent: presentCreatedContractor,
    handle: (context) => createContractor(context, context.body),
  }),
  operation({
    id: 'importContractors',
    route: 'POST /contractors/bulk',
    caller: 'founder',
    summary: 'Import contractors',
    description: [
      'Each row is imported or rejected independently of the others. A row whose `externalId` exists already is neither: its id is in',
      '`existing`, so an import can be repeated.',
    ].join(' '),
    body: {
      schema: contractorRows,
      docsSchema: contractorRows.extend({ rows: z.array(contractorRow) }),
      example: { rows: [{ name, email, address, externalId }] },
    },
    response: {
      description: 'The imported contractors, and the rejected rows, counted from 1',
      schema: importShape,
      example: {
        imported: [CONTRACTOR_EXAMPLE],
        existing: [EXAMPLE.orgId],
        errors: [{ row: 2, code: 'name-required', reason: 'name required' }],
      },
    },
    refusals: ['organisation-dissolved'],
    idempotent: (context, outcome) => presentImport(context, context.body.rows, outcome),
    handle: (context) => importContractors(context, context.body.rows),
  }),
  operation({
    id: 'getContractor',
    route: 'GET /contractors/{id}',
    caller: 'participant',
    summary: 'Get a contractor',
    description: 'For the employer, and for the user linked to the contractor.',
    parameters,
    response: { description: 'The contractor', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: ['contractor-not-found'],
    handle: (context) => findContractor(context, context.params.id),
  }),
  operation({
    id: 'changeContractor',
    route: 'PATCH /contractors/{id}',
    caller: 'participant',
    summary: 'Change a contractor',
    description: [
      'The employer may change every field. The contractor may change its own `address` to an account that it has signed in',
      'with or joined. `null` clears an optional field. `inactive` cancels the `draft` and `ready` payouts.',
    ].join(' '),
    parameters,
    body: { schema: contractorChanges, example: { name, email, address, externalId, status: 'inactive' } },
    permits: ({ user }, body) => isEmployer(user) || requireOwnFields(body),
    response: {
      description: 'The changed contractor',
      schema: contractorShape,
      example: { ...CONTRACTOR_EXAMPLE, status: 'inactive' },
    },
    refusals: ['account-unproven', 'contractor-not-found', 'email-taken', 'address-taken', 'external-id-taken'],
    handle: (context) => changeContractor(context, { id: context.params.id, changes: context.body }),
  }),
  operation({
    id: 'removeContractor',
    route: 'DELETE /contractors/{id}',
    caller: 'employer',
    summary: 'Delete a contractor',
    description: 'Its payouts are kept; those that are `draft` or `ready` are canceled.',
    parameters,
    response: { description: 'The contractor is deleted', schema: removedShape, example: { id: EXAMPLE.contractorId } },
    refusals: ['contractor-not-found'],
    handle: (context) => removeContractor(context, context.params.id),
  }),
])
