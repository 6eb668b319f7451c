import { Address, StrKey, xdr } from '@stellar/stellar-sdk'
import type { HostError } from './host-error.ts'
import { string, symbol } from './scval.ts'

type EventType = 'contract' | 'diagnostic'

function event(type: EventType, contract: string | undefined, topics: xdr.ScVal[], data: xdr.ScVal): xdr.ContractEvent {
  return new xdr.ContractEvent({
    ext: xdr.ExtensionPoint.v0(),
    contractId: contract === undefined ? null : new xdr.ContractId(StrKey.decodeContract(contract)),
    type: xdr.ContractEventType[type],
    body: xdr.ContractEventBody.v0(new xdr.ContractEventV0({ topics, data })),
  })
}

export function contractEvent(contract: string, topics: xdr.ScVal[], data: xdr.ScVal): xdr.ContractEvent {
  return event('contract', contract, topics, data)
}

export function errorEvent(
  contract: string | undefined,
  { error }: HostError,
  message: string,
  values: readonly xdr.ScVal[] = [],
): xdr.DiagnosticEvent {
  const topics = [symbol('error'), xdr.ScVal.scvError(error)]
  const data = values.length > 0 ? xdr.ScVal.scvVec([string(message), ...values]) : string(message)
  return diagnostic(event('diagnostic', contract, topics, data), false)
}

export function diagnostic(event: xdr.ContractEvent, inSuccessfulContractCall: boolean): xdr.DiagnosticEvent {
  return new xdr.DiagnosticEvent({ inSuccessfulContractCall, event })
}

/** The error as the host prints it: a line with the code, then the events, newest first. */
export function describeFailure(error: HostError, diagnostics: readonly xdr.DiagnosticEvent[]): string {
  const title = `HostError: ${error.label}`
  if (error.events === 'unavailable') return `${title}\nDebugInfo not available\n`
  const lines = diagnostics.toReversed().map((one, index) => `${String(index).padStart(4)}: ${describe(one.event)}`)
  return [title, ...(lines.length > 0 ? ['', 'Event log (newest first):', ...lines] : []), ''].join('\n')
}

function describe({ type, contractId, body }: xdr.ContractEvent): string {
  const kind = type.name === 'diagnostic' ? 'Diagnostic Event' : 'Failed Contract Event (not emitted)'
  const contract = contractId === null ? '' : `contract:${StrKey.encodeContract(contractId.value)}, `
  const topics = body.value.topics.map(print).join(', ')
  return `[${kind}] ${contract}topics:[${topics}], data:${print(body.value.data)}`
}

const LONGEST_BYTES = 64

function print(value: xdr.ScVal): string {
  switch (value.type) {
    case 'scvSymbol':
      return value.value
    case 'scvString':
      return JSON.stringify(value.value)
    case 'scvError':
      return printError(value.error)
    case 'scvBytes': {
      const { value: bytes } = value.bytes
      const rest = bytes.length > LONGEST_BYTES ? '…' : ''
      return `Bytes(${Buffer.from(bytes.subarray(0, LONGEST_BYTES)).toString('hex')}${rest})`
    }
    case 'scvVec':
      return `[${(value.vec ?? []).map(print).join(', ')}]`
    case 'scvMap':
      return `{${(value.map ?? []).map(({ key, val }) => `${print(key)}: ${print(val)}`).join(', ')}}`
    default:
      return printScalar(value)
  }
}

function printError(error: xdr.ScError): string {
  if (error.type === 'sceContract') return `Error(Contract, #${error.contractCode})`
  return `Error(${error.type.slice('sce'.length)}, ${error.code.name.slice('scec'.length)})`
}

function printScalar(value: xdr.ScVal): string {
  if (value.type === 'scvI128') return String((value.i128.hi << 64n) | value.i128.lo)
  if (value.type === 'scvAddress') return Address.fromScAddress(value.address).toString()
  return String(value.value)
}
