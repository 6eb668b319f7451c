import { xdr } from '@stellar/stellar-sdk'

type HostErrorKind = 'WasmVm' | 'Context' | 'Storage' | 'Object' | 'Crypto' | 'Budget' | 'Value' | 'Auth'
type HostErrorCode =
  | 'InvalidInput'
  | 'MissingValue'
  | 'ExistingValue'
  | 'ExceededLimit'
  | 'InvalidAction'
  | 'UnexpectedType'
  | 'UnexpectedSize'

/**
 * Whether the host logs an error event: `none` where it returns the error without logging, `unavailable` where the error
 * carries no debug information at all.
 */
type ErrorEvents = 'logged' | 'none' | 'unavailable'

/** Stops a host function, whose writes are rolled back. No contract sees it; the caller gets `label` and an event. */
export class HostError extends Error {
  readonly error: xdr.ScError
  /** as the host prints it: `Error(Contract, #3506)`, `Error(Auth, InvalidAction)` */
  readonly label: string
  /** the arguments of the message, as the event shows them after it */
  readonly values: readonly xdr.ScVal[]
  readonly events: ErrorEvents

  constructor(
    error: xdr.ScError,
    label: string,
    message: string,
    values: readonly xdr.ScVal[] = [],
    events: ErrorEvents = 'logged',
  ) {
    super(message)
    this.name = 'HostError'
    this.error = error
    this.label = label
    this.values = values
    this.events = events
  }
}

/** An error that a contract raised by number. */
export function contractError(code: number, message: string, ...values: xdr.ScVal[]): HostError {
  return new HostError(xdr.ScError.sceContract(code), `Error(Contract, #${code})`, message, values)
}

/** An error that the host itself raised. */
export function hostError(
  kind: HostErrorKind,
  code: HostErrorCode,
  message: string,
  values: readonly xdr.ScVal[] = [],
  events: ErrorEvents = 'logged',
): HostError {
  const error = xdr.ScError[`sce${kind}`](xdr.ScErrorCode[`scec${code}`])
  return new HostError(error, `Error(${kind}, ${code})`, message, values, events)
}
