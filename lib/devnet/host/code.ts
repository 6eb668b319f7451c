import { xdr } from '@stellar/stellar-sdk'
import type { Contract, Parameters, Returns } from './contract-function.ts'
import { ACCOUNT_FIELDS } from './token/account.ts'
import { DELEGATION_FIELDS } from './token/delegation.ts'

const HEADER = Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00)
const CUSTOM_SECTION = 0
const NAME_SECTION = 'built-in'
const SPEC_SECTION = 'contractspecv0'

/**
 * The code entry of a contract built into this ledger: a Wasm module without code that contains the contract's name
 * and its interface where clients look for it (`contract.Client.from`).
 */
export function encodeCode(name: string, contract: Contract): Uint8Array {
  return Buffer.concat([HEADER, section(NAME_SECTION, Buffer.from(name)), section(SPEC_SECTION, specOf(contract))])
}

/** The contract of a code entry; undefined if `encodeCode` didn't create it. */
export function nameOfCode(code: Uint8Array): string | undefined {
  const start = HEADER.length + 3
  const name = Buffer.from(code.subarray(start, start + NAME_SECTION.length)).toString()
  const size = code[HEADER.length + 1]
  if (name !== NAME_SECTION || size === undefined) return undefined
  return Buffer.from(code.subarray(start + NAME_SECTION.length, HEADER.length + 2 + size)).toString()
}

function section(name: string, content: Uint8Array): Uint8Array {
  const body = Buffer.concat([Uint8Array.of(name.length), Buffer.from(name), content])
  return Buffer.concat([Uint8Array.of(CUSTOM_SECTION), leb128(body.length), body])
}

function leb128(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  do {
    const low = rest & 0x7f
    rest >>>= 7
    bytes.push(rest === 0 ? low : low | 0x80)
  } while (rest !== 0)
  return Uint8Array.from(bytes)
}

const bytesN = (n: number) => xdr.ScSpecTypeDef.scSpecTypeBytesN(new xdr.ScSpecTypeBytesN({ n }))

const udt = (name: string) => xdr.ScSpecTypeDef.scSpecTypeUdt(new xdr.ScSpecTypeUdt({ name }))

const TYPES: { [Type in keyof Parameters | Returns | 'field']: () => xdr.ScSpecTypeDef } = {
  address: () => xdr.ScSpecTypeDef.scSpecTypeAddress(),
  muxed: () => xdr.ScSpecTypeDef.scSpecTypeMuxedAddress(),
  u32: () => xdr.ScSpecTypeDef.scSpecTypeU32(),
  i128: () => xdr.ScSpecTypeDef.scSpecTypeI128(),
  bool: () => xdr.ScSpecTypeDef.scSpecTypeBool(),
  bytes: () => xdr.ScSpecTypeDef.scSpecTypeBytes(),
  string: () => xdr.ScSpecTypeDef.scSpecTypeString(),
  void: () => xdr.ScSpecTypeDef.scSpecTypeVoid(),
  point: () => bytesN(64),
  field: () => bytesN(32),
  account: () => udt('ConfidentialAccount'),
  delegation: () => udt('SpenderDelegation'),
}

function specOf(contract: Contract): Uint8Array {
  const functions = Array.from(contract, ([name, { parameters, returns }]) => {
    const inputs = Object.entries(parameters).map(
      ([parameter, type]) => new xdr.ScSpecFunctionInputV0({ doc: '', name: parameter, type: TYPES[type]() }),
    )
    const outputs = returns === 'void' ? [] : [TYPES[returns]()]
    return xdr.ScSpecEntry.scSpecEntryFunctionV0(new xdr.ScSpecFunctionV0({ doc: '', name, inputs, outputs }))
  })
  const returned = new Set(Array.from(contract.values(), ({ returns }) => returns))
  const structs = [
    ...(returned.has('account') ? [structSpec('ConfidentialAccount', ACCOUNT_FIELDS)] : []),
    ...(returned.has('delegation') ? [structSpec('SpenderDelegation', DELEGATION_FIELDS)] : []),
  ]
  return Buffer.concat([...functions, ...structs].map((entry) => entry.toXdr()))
}

function structSpec(name: string, types: Readonly<Record<string, keyof typeof TYPES>>): xdr.ScSpecEntry {
  const fields = Object.entries(types).map(
    ([field, type]) => new xdr.ScSpecUdtStructFieldV0({ doc: '', name: field, type: TYPES[type]() }),
  )
  return xdr.ScSpecEntry.scSpecEntryUdtStructV0(new xdr.ScSpecUdtStructV0({ doc: '', lib: '', name, fields }))
}
