import type { Sep10Settings } from './challenge.ts'

/** Writes the stellar.toml (SEP-1) in which wallets find the network, signing key and SEP-10 endpoint of this service. */
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

/** For URLs, keys and passphrases, a JSON string is a TOML basic string. */
function assignments(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    .join('')
}
