/** Why there is no proof or no verification result. */
export type ProverErrorCode =
  /** a circuit, key or reference string is missing or damaged, or they do not belong together */
  | 'files-invalid'
  /** the statement is false, or lacks its secrets */
  | 'statement-invalid'
  /** the backend crashed, took too long or was closed */
  | 'failed'

export class ProverError extends Error {
  readonly code: ProverErrorCode

  constructor(code: ProverErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options)
    this.name = 'ProverError'
    this.code = code
  }

  /** A build or a frontend may bundle this file several times, so `instanceof` compares names. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'ProverError'
  }
}
