import type { Sep10Settings } from './challenge.ts'

/**
 * The file by which wallets find the sign-in (SEP-1): network, signing key and SEP-10 endpoint of this service, as
 * TOML.
 */
export function stellarToml(settings: Sep10Settings, publicUrl: string): string {
  const entries = {
    VERSION: '2.7.0',
    NETWORK_PASSPHRASE: settings.networkPassphrase,
    SIGNING_KEY: settings.signer.publicKey(),
    WEB_AUTH_ENDPOINT: `${publicUrl}/api/auth/sep10`,
  }
  // Wallets built on the SDF's wallet SDK fail without this table.
  const documentation = { ORG_NAME: 'Confidential payroll', ORG_URL: publicUrl }
  return `${assignments(entries)}CURRENCIES = []\n\n[DOCUMENTATION]\n${assignments(documentation)}`
}

/** A JSON string is a TOML basic string for all that a URL, a key or a passphrase can hold. */
function assignments(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    .join('')
}
