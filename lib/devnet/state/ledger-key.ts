import { StrKey, xdr } from '@stellar/stellar-sdk'

type AnyAsset = xdr.Asset | xdr.ChangeTrustAsset | xdr.TrustLineAsset

export function publicKey(id: string): xdr.PublicKey {
  return xdr.PublicKey.publicKeyTypeEd25519(StrKey.decodeEd25519PublicKey(id))
}

/** strkey (G…) of an account id */
export function accountId(key: xdr.PublicKey): string {
  return StrKey.encodeEd25519PublicKey(key.ed25519.value)
}

/** base64 XDR of the LedgerKey, the key of an entry in `State` */
export function accountKey(id: string): string {
  return xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: publicKey(id) })).toXdr('base64')
}

export function trustlineKey(id: string, asset: xdr.TrustLineAsset): string {
  return xdr.LedgerKey.trustline(new xdr.LedgerKeyTrustLine({ accountId: publicKey(id), asset })).toXdr('base64')
}

export function dataKey(id: string, dataName: xdr.XdrString): string {
  return xdr.LedgerKey.data(new xdr.LedgerKeyData({ accountId: publicKey(id), dataName })).toXdr('base64')
}

/** An asset as a trustline asset. Pool shares never get here, because operations on them are rejected. */
export function trustlineAsset(asset: AnyAsset): xdr.TrustLineAsset {
  switch (asset.type) {
    case 'assetTypeCreditAlphanum4':
      return xdr.TrustLineAsset.assetTypeCreditAlphanum4(asset.alphaNum4)
    case 'assetTypeCreditAlphanum12':
      return xdr.TrustLineAsset.assetTypeCreditAlphanum12(asset.alphaNum12)
    default:
      return xdr.TrustLineAsset.assetTypeNative()
  }
}

/** strkey (G…) of the issuer, or null for XLM */
export function issuerOf(asset: AnyAsset): string | null {
  if (asset.type === 'assetTypeCreditAlphanum4') return accountId(asset.alphaNum4.issuer)
  if (asset.type === 'assetTypeCreditAlphanum12') return accountId(asset.alphaNum12.issuer)
  return null
}

/** core's isAssetValid: letters and digits, then only NULs; a code of up to four characters has a separate type. */
export function isSoundAsset(asset: AnyAsset): boolean {
  if (asset.type === 'assetTypeNative') return true
  if (asset.type === 'assetTypeCreditAlphanum4') return /^[a-zA-Z0-9]{1,4}\0*$/.test(ascii(asset.alphaNum4.assetCode))
  if (asset.type === 'assetTypeCreditAlphanum12') {
    return /^[a-zA-Z0-9]{5,12}\0*$/.test(ascii(asset.alphaNum12.assetCode))
  }
  return false
}

/** core's isStringValid: ASCII without control characters */
export function isSoundString(text: xdr.XdrString): boolean {
  return text.bytes.every((byte) => byte >= 0x20 && byte < 0x7f)
}

function ascii(code: { readonly value: Uint8Array }): string {
  return Buffer.from(code.value).toString('latin1')
}
