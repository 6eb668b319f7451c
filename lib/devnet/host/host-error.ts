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

/** Stops a host function, whose writes are rolled back. No contract sees it; the caller gets `label` and an event. */
export class HostError extends Error {
  readonly error: xdr.ScError
  /** as the host prints it: `Error(Contract, #3506)`, `Error(Auth, InvalidAction)` */
  readonly label: string
  /** the values that the message is about: those used and those allowed, for instance */
  readonly values: readonly bigint[]

  constructor(error: xdr.ScError, label: string, message: string, values: readonly bigint[] = []) {
    super(message)
    this.name = 'HostError'
    this.error = error
    this.label = label
    this.values = values
  }
}

/** An error that a contract raised by number. */
export function contractError(code: number, message: string): HostError {
  return new HostError(xdr.ScError.sceContract(code), `Error(Contract, #${code})`, message)
}

/** An error that the host itself raised. */
export function hostError(
  kind: HostErrorKind,
  code: HostErrorCode,
  message: string,
  values: readonly bigint[] = [],
): HostError {
  const error = xdr.ScError[`sce${kind}`](xdr.ScErrorCode[`scec${code}`])
  return new HostError(error, `Error(${kind}, ${code})`, message, values)
}
