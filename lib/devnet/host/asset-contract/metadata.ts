import { Asset } from '@stellar/stellar-sdk'
import type { Call } from '../contract-function.ts'
import { contractError } from '../host-error.ts'
import { fieldsOf } from '../scval.ts'

const DAY = 17_280

/** The asset that the contract manages, from its name: `native` or `CODE:ISSUER`. */
export function assetOf(call: Call): Asset {
  const name = fieldsOf(call.setting('METADATA'))?.get('name')
  const text = name?.type === 'scvString' ? name.value : ''
  const [code, issuer] = text.split(':')
  return code === undefined || issuer === undefined ? Asset.native() : new Asset(code, issuer)
}

/** `native` or `CODE:ISSUER`: the last topic of every event. */
export function nameOf(asset: Asset): string {
  return asset.isNative() ? 'native' : `${asset.getCode()}:${asset.getIssuer()}`
}

export const isIssuer = (asset: Asset, address: string): boolean => !asset.isNative() && asset.getIssuer() === address

/** Error(Contract, #2) for the native asset, and for the issuer of the asset as its holder. */
export function checkHolder(asset: Asset, holder: string): void {
  if (asset.isNative()) throw contractError(2, 'operation is not supported for the native asset')
  if (isIssuer(asset, holder)) throw contractError(2, 'operation is not supported for the issuer')
}

/** Extends the instance to a week when less than six days are left. */
export const touchInstance = (call: Call): void => call.extendInstance(6 * DAY, 7 * DAY)

/** Extends a contract's balance to 30 days when less than 29 are left. */
export const BALANCE_THRESHOLD = 29 * DAY
export const BALANCE_EXTENSION = 30 * DAY
