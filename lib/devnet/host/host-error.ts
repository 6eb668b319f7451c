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

/** Ends a host function and rolls back its writes. Contracts can't catch it; the client gets `label` and an event. */
export class HostError extends Error {
  readonly error: xdr.ScError
  /** as the host prints it: `Error(Contract, #3506)`, `Error(Auth, InvalidAction)` */
  readonly label: string
  /** the arguments that follow the message in the event */
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

export function contractError(code: number, message: string, ...values: xdr.ScVal[]): HostError {
  return new HostError(xdr.ScError.sceContract(code), `Error(Contract, #${code})`, message, values)
}

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
