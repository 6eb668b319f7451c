import { z } from 'zod'
import { FULL } from '#lib/directory/contractors/capacity.ts'
import { contractorsQuery, SAME_ADDRESS, SAME_EMAIL } from '#lib/directory/contractors/contractors.ts'
import {
  contractorChanges,
  contractorRow,
  contractorRows,
  contractorShape,
  contractorsShape,
  importShape,
  inviteShape,
  newContractor,
  removedShape,
  TOO_MANY_ROWS,
} from '#lib/directory/contractors/schema.ts'
import { DISSOLVED } from '#lib/directory/organisations.ts'
import { ANY_PAGE, CONTRACTOR_EXAMPLE, EXAMPLE, OTHER_PROVIDER } from './examples.ts'
import type { Operation } from './operation.ts'

const CONTRACTOR_ID = { id: { description: 'id of the contractor', example: EXAMPLE.contractorId } }
const NOT_FOUND = ['contractor not found']
const TAKEN = [SAME_EMAIL, SAME_ADDRESS]
const { name, email, address, rate } = CONTRACTOR_EXAMPLE
const shared = { group: 'Contractors', caller: 'employer' } as const

export const CONTRACTOR_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'listContractors',
    method: 'get',
    path: '/contractors',
    summary: 'List your contractors, newest first',
    query: {
      schema: contractorsQuery,
      example: { ...ANY_PAGE.example, status: 'ready', q: 'ada' },
      messages: ['cursor is not one of ours'],
    },
    answer: {
      description: 'Up to 1,000 of them, or as many as `limit` says',
      schema: contractorsShape,
      example: { contractors: [CONTRACTOR_EXAMPLE] },
      paged: true,
    },
  },
  {
    ...shared,
    id: 'createContractor',
    method: 'post',
    path: '/contractors',
    summary: 'Add a contractor',
    description: '`ready` if the address is registered with the confidential token, else `invited`.',
    body: { schema: newContractor, example: { name, email, address, rate } },
    answer: { description: 'The contractor', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: { 409: [...TAKEN, FULL, DISSOLVED] },
  },
  {
    ...shared,
    id: 'importContractors',
    method: 'post',
    path: '/contractors/bulk',
    summary: 'Add many contractors at once',
    description:
      'Each row stands alone: a row that cannot be a contractor is an error of its own, the others are imported.',
    body: {
      schema: contractorRows.extend({ rows: z.array(contractorRow) }),
      parsedBy: contractorRows,
      messages: [TOO_MANY_ROWS],
      example: { rows: [{ name, email, address, amount: 4200.5 }] },
    },
    answer: {
      description: 'Who was imported, and which rows (from 1) were not',
      schema: importShape,
      example: { imported: [CONTRACTOR_EXAMPLE], errors: [{ row: 2, reason: 'name required' }] },
    },
    refusals: { 409: [DISSOLVED] },
  },
  {
    ...shared,
    id: 'getContractor',
    method: 'get',
    path: '/contractors/{id}',
    caller: 'session',
    summary: 'Look up a contractor',
    description: 'For its employer, and for the user that it is.',
    parameters: CONTRACTOR_ID,
    answer: { description: 'The contractor', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: { 403: ['employer role required', OTHER_PROVIDER], 404: NOT_FOUND },
  },
  {
    ...shared,
    id: 'changeContractor',
    method: 'patch',
    path: '/contractors/{id}',
    caller: 'session',
    summary: 'Change a contractor',
    description: [
      'The employer may change every field, the contractor itself its `address`, to an account that it has signed in with',
      'or joined to itself. `null` clears an optional field.',
      '`inactive` cancels the payouts that are not on their way.',
    ].join(' '),
    parameters: CONTRACTOR_ID,
    body: { schema: contractorChanges, example: { name, email, address, rate, status: 'inactive' } },
    answer: {
      description: 'The contractor as it is now',
      schema: contractorShape,
      example: { ...CONTRACTOR_EXAMPLE, status: 'inactive' },
    },
    refusals: {
      403: ['employer role required', 'sign in with that account first', OTHER_PROVIDER],
      404: NOT_FOUND,
      409: TAKEN,
    },
  },
  {
    ...shared,
    id: 'removeContractor',
    method: 'delete',
    path: '/contractors/{id}',
    summary: 'Remove a contractor',
    description: 'Its payouts stay; those that are not on their way are canceled.',
    parameters: CONTRACTOR_ID,
    answer: { description: 'It is gone', schema: removedShape, example: { id: EXAMPLE.contractorId } },
    refusals: { 404: NOT_FOUND },
  },
  {
    ...shared,
    id: 'inviteContractor',
    method: 'post',
    path: '/contractors/{id}/invite',
    summary: 'Invite a contractor, or do so again',
    description:
      'The link holds for 14 days and once; earlier ones become void. It is mailed where mail is configured.',
    parameters: CONTRACTOR_ID,
    answer: {
      description: 'The link',
      schema: inviteShape,
      example: { inviteUrl: `https://pay.example/invite/${EXAMPLE.invite}` },
    },
    refusals: {
      404: NOT_FOUND,
      409: ['contractor is inactive', 'contractor has accepted already'],
      429: ['no more than {count} invites are mailed for an organisation in 24 hours'],
      503: ['the mail could not be sent'],
    },
  },
  {
    id: 'acceptInvite',
    method: 'post',
    path: '/invites/{token}/accept',
    group: 'Contractors',
    caller: 'session',
    extension: true,
    summary: 'Accept an invite',
    description: 'Links the caller to the contractor record. A wallet’s account becomes its address if it has none.',
    parameters: { token: { description: 'the last part of the link', example: EXAMPLE.invite } },
    answer: { description: 'The caller’s contractor record', schema: contractorShape, example: CONTRACTOR_EXAMPLE },
    refusals: {
      403: ['this is an invite of your own organisation', 'this invite is for somebody else', OTHER_PROVIDER],
      404: ['invite not found'],
      409: ['invite accepted already', SAME_ADDRESS],
    },
  },
]
