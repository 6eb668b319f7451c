import { Address, xdr } from '@stellar/stellar-sdk'

export const VOID = xdr.ScVal.scvVoid()

export const symbol = (name: string): xdr.ScVal => xdr.ScVal.scvSymbol(name)
export const bytes = (value: Uint8Array): xdr.ScVal => xdr.ScVal.scvBytes(value)
export const bool = (value: boolean): xdr.ScVal => xdr.ScVal.scvBool(value)
export const u32 = (value: number): xdr.ScVal => xdr.ScVal.scvU32(value)
export const i64 = (value: bigint): xdr.ScVal => xdr.ScVal.scvI64(value)
export const u64 = (value: bigint): xdr.ScVal => xdr.ScVal.scvU64(value)
export const string = (value: string): xdr.ScVal => xdr.ScVal.scvString(value)
export const vec = (...items: xdr.ScVal[]): xdr.ScVal => xdr.ScVal.scvVec(items)
export const address = (strkey: string): xdr.ScVal => new Address(strkey).toScVal()

export function i128(value: bigint): xdr.ScVal {
  return xdr.ScVal.scvI128(new xdr.Int128Parts({ hi: value >> 64n, lo: BigInt.asUintN(64, value) }))
}

/** A map with symbol keys, in the ascending order that the host requires. */
export function struct(fields: Readonly<Record<string, xdr.ScVal>>): xdr.ScVal {
  const entries = Object.keys(fields)
    .sort()
    .flatMap((name) => {
      const val = fields[name]
      return val === undefined ? [] : [new xdr.ScMapEntry({ key: symbol(name), val })]
    })
  return xdr.ScVal.scvMap(entries)
}

/** The fields of a map with symbol keys in strictly ascending order; undefined for anything else. */
export function fieldsOf(value: xdr.ScVal | undefined): Map<string, xdr.ScVal> | undefined {
  if (value?.type !== 'scvMap' || value.map === null) return undefined
  const fields = new Map<string, xdr.ScVal>()
  let previous = ''
  for (const { key, val } of value.map) {
    if (key.type !== 'scvSymbol' || key.value <= previous) return undefined
    previous = key.value
    fields.set(previous, val)
  }
  return fields
}

export function bytesOf(value: xdr.ScVal | undefined): Uint8Array | undefined {
  return value?.type === 'scvBytes' ? value.bytes.value : undefined
}

export function i128Of(value: xdr.ScVal | undefined): bigint | undefined {
  return value?.type === 'scvI128' ? (value.i128.hi << 64n) | value.i128.lo : undefined
}

export function u32Of(value: xdr.ScVal | undefined): number | undefined {
  return value?.type === 'scvU32' ? value.u32 : undefined
}

export function boolOf(value: xdr.ScVal | undefined): boolean | undefined {
  return value?.type === 'scvBool' ? value.b : undefined
}

/** The strkey of an account (G…) or a contract (C…); undefined for anything else, including muxed accounts. */
export function addressOf(value: xdr.ScVal | undefined): string | undefined {
  if (value?.type !== 'scvAddress') return undefined
  const { type } = value.address
  if (type !== 'scAddressTypeAccount' && type !== 'scAddressTypeContract') return undefined
  return Address.fromScAddress(value.address).toString()
}

/** An address with an optional memo id (CAP-67). */
export interface MuxedAddress {
  readonly address: string
  readonly id: bigint | undefined
}

export function muxedAddressOf(value: xdr.ScVal | undefined): MuxedAddress | undefined {
  if (value?.type === 'scvAddress' && value.address.type === 'scAddressTypeMuxedAccount') {
    const { ed25519, id } = value.address.muxedAccount
    return { address: Address.account(ed25519.value).toString(), id }
  }
  const plain = addressOf(value)
  return plain === undefined ? undefined : { address: plain, id: undefined }
}
