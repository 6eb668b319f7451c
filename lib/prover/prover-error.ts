import { CodedError } from '#lib/text/coded-error.ts'

/** Why there is no proof or no verification result. */
export type ProverErrorCode =
  /** a circuit, key or reference string is missing or damaged, or they do not belong together */
  | 'files-invalid'
  /** the statement is false, or lacks its secrets */
  | 'statement-invalid'
  /** the backend crashed, took too long or was closed */
  | 'failed'

export class ProverError extends CodedError<ProverErrorCode> {
  static override readonly className = 'ProverError'
}
