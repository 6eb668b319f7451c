import { z } from 'zod'
import { changeContractor, removeContractor } from '#lib/directory/contractors/changes.ts'
import { contractorsQuery, findContractor, listContractors } from '#lib/directory/contractors/contractors.ts'
import { createContractor } from '#lib/directory/contractors/creation.ts'
import { importContractors } from '#lib/directory/contractors/import.ts'
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
import { CONTRACTOR_EXAMPLE, EXAMPLE, PAGE_EXAMPLE } from './examples.ts'
import { inGroup, operation, respondWithPage } from './operation.ts'

const parameters = { id: { description: 'id of the contractor', example: EXAMPLE.contractorId } }
const { name, email, address, rate } = CONTRACTOR_EXAMPLE

export const CONTRACTOR_OPERATIONS = inGroup('Contractors', [
  operation({
    id: 'listContractors',
    route: 'GET /contractors',
    caller: 'employer',
    summary: 'List your contractors, newest first',
    query: { schema: contractorsQuery, example: { ...PAGE_EXAMPLE, status: 'ready', q: 'ada' } },
    response: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
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
    body: { schema: newContractor, example: { name, email, address, rate } },
    response: { description: 'The contractor', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: ['email-taken', 'address-taken', 'contractors-full', 'organisation-dissolved'],
    handle: (context) => createContractor(context, context.body),
  }),
  operation({
    id: 'importContractors',
    route: 'POST /contractors/bulk',
    caller: 'founder',
    summary: 'Add many contractors at once',
    description:
      'Each row stands alone: a row that cannot be a contractor is an error of its own, the others are imported.',
    body: {
      schema: contractorRows,
      docsSchema: contractorRows.extend({ rows: z.array(contractorRow) }),
      example: { rows: [{ name, email, address, amount: 4200.5 }] },
    },
    response: {
      description: 'Who was imported, and which rows (from 1) were not',
      schema: importShape,
      example: { imported: [CONTRACTOR_EXAMPLE], errors: [{ row: 2, reason: 'name required' }] },
    },
    refusals: ['organisation-dissolved'],
    handle: (context) => importContractors(context, context.body.rows),
  }),
  operation({
    id: 'getContractor',
    route: 'GET /contractors/{id}',
    caller: 'participant',
    summary: 'Look up a contractor',
    description: 'For its employer, and for the user that it is.',
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
      'The employer may change every field; the contractor its own `address`, to an account that it has signed in with',
      'or joined to itself. `null` clears an optional field. `inactive` cancels its `draft` and `ready` payouts.',
    ].join(' '),
    parameters,
    body: { schema: contractorChanges, example: { name, email, address, rate, status: 'inactive' } },
    response: {
      description: 'The contractor as it is now',
      schema: contractorShape,
      example: { ...CONTRACTOR_EXAMPLE, status: 'inactive' },
    },
    refusals: ['account-unproven', 'contractor-not-found', 'email-taken', 'address-taken'],
    handle: (context) => changeContractor(context, { id: context.params.id, changes: context.body }),
  }),
  operation({
    id: 'removeContractor',
    route: 'DELETE /contractors/{id}',
    caller: 'employer',
    summary: 'Remove a contractor',
    description: 'Its payouts stay; those that are `draft` or `ready` are canceled.',
    parameters,
    response: { description: 'It is gone', schema: removedShape, example: { id: EXAMPLE.contractorId } },
    refusals: ['contractor-not-found'],
    handle: (context) => removeContractor(context, context.params.id),
  }),
])
