import type { operations } from './payroll-api.d.ts'

/**
 * The codes of the service, in docs/error-codes.md, and two of the client: `network` without a response, and `unknown` for a response
 * that is not the service's.
 */
export type PayrollErrorCode = CodeIn<BodyOf<ResponsesOf<operations[keyof operations]>>> | 'network' | 'unknown'

type ResponsesOf<Operation> = Operation extends { responses: infer Responses } ? Responses[keyof Responses] : never
type BodyOf<Given> = Given extends { content: { 'application/json': infer Body } } ? Body : never
type CodeIn<Body> = Body extends { code?: infer Code } ? (string extends Code ? never : Extract<Code, string>) : never

/** An error response, or none: `code` is for programs, `message` for people. */
export class PayrollError extends Error {
  /** the HTTP status; 0 without a response */
  readonly status: number
  readonly code: PayrollErrorCode
  /** every bad field, if there are several */
  readonly fields: readonly { path: string; message: string }[]
  /** the other fields of the body, such as `hash` or `jobId` */
  readonly details: Readonly<Record<string, unknown>>
  /** seconds to wait before a retry, from the Retry-After header */
  readonly retryAfter: number | undefined
  /** the id of the request in the operator's log */
  readonly requestId: string | undefined

  constructor(response: Response, body: Record<string, unknown>, options?: ErrorOptions) {
    const { error, message, code, fields, ...details } = body
    super(String(message ?? error ?? response.statusText), options)
    this.name = 'PayrollError'
    this.status = response.status
    this.code = String(code ?? 'unknown') as PayrollErrorCode
    this.fields = Array.isArray(fields) ? fields : []
    this.details = details
    const retryAfter = response.headers.get('retry-after')
    // A proxy may name a date.
    const seconds = Number(retryAfter ?? Number.NaN)
    this.retryAfter = Number.isFinite(seconds) ? seconds : undefined
    this.requestId = response.headers.get('x-request-id') ?? undefined
  }
}
