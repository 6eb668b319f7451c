import type { z } from 'zod'

/** The methods that an operation may have, as OpenAPI writes them. */
export const OPERATION_METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const
export type OperationMethod = (typeof OPERATION_METHODS)[number]

/** The groups of the reference, in their order. */
export const OPERATION_GROUPS = {
  Sessions: 'Signing in with a wallet (SEP-10) or with an access token of an identity provider.',
  Transfers: 'Sponsoring a confidential transfer (CAP-15): the sender pays no network fee.',
  Contractors: 'The directory of those who are paid: public data only, never a secret.',
  Batches: 'Disbursements, their payouts, and how far they have come.',
  Me: 'Who the caller is, and in which roles.',
  Funding: 'Test funds, and what backs the confidential balances.',
  Relay: 'Batches that the headless relay pays from accounts of its own.',
  'On your device': 'What takes a key that never leaves the user’s device: these routes always answer 501.',
  Service: 'Whether the service is well, and this document.',
} as const
export type OperationGroup = keyof typeof OPERATION_GROUPS

/** Who may call: anybody, the holder of a session, an employer, or whoever has a token of the operator's. */
export type OperationCaller = 'anybody' | 'session' | 'employer' | 'metrics' | 'cron'

/** A body or a query: the schema that the route parses it with, and an example that names every field. */
export interface Asked {
  schema: z.ZodObject
  example: Record<string, unknown>
  /** what the route parses first, where it leaves some fields to its verb */
  parsedBy?: z.ZodType
  /** whether it may come as a form, too */
  form?: true
  /** what the schema leaves to the verb to refuse: further messages of the 400 */
  messages?: readonly string[]
}

/** The 200 of an operation. */
export interface Answered {
  description: string
  /** undefined for an answer that is no JSON */
  schema?: z.ZodType
  contentType?: string
  example: unknown
  /** whether a Link header may lead to the next page */
  paged?: boolean
}

/**
 * One method of one route, as the document tells it. Messages that every operation of its sort can answer with (401, 413,
 * 415, 500, the database's 503) are not repeated here. In a message, `{name}` stands for what varies.
 */
export interface Operation {
  id: string
  method: OperationMethod
  /** below the base address, with `{name}` for a parameter */
  path: `/${string}`
  group: OperationGroup
  caller: OperationCaller
  summary: string
  description?: string
  /** not in the specification of the interface: one of ours */
  extension?: true
  /** what each parameter of the path is */
  parameters?: Record<string, { description: string; example: string }>
  query?: Asked
  body?: Asked
  answer?: Answered
  /** further answers, by status: their messages */
  refusals?: Partial<Record<number, readonly string[]>>
  /** further answers with a body of their own, by status */
  otherAnswers?: Record<number, Answered>
  /** the message of the 500, and of everything else that would be one or a 503 */
  failure?: string
  /** whether it works without database and ledger */
  selfContained?: true
}
