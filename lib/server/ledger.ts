import { dataPath, OtherVersion } from '#lib/config/data-directory.ts'
import { ConfigurationError, type Environment } from '#lib/config/environment.ts'
import type { identityIssuer, startDevnet } from '#lib/devnet/devnet.ts'

/** The embedded ledger, and its issuer of access tokens for any email. */
interface EmbeddedLedger {
  devnet: Awaited<ReturnType<typeof startDevnet>>
  issuer: string
  audience: string
}

/** Starts the embedded ledger as configured. A service with another ledger never loads this code. */
export async function startLedger(
  configuration: Environment,
  identityKey: Parameters<typeof identityIssuer>[0]['key'],
  relay?: Parameters<typeof startDevnet>[0]['relay'],
): Promise<EmbeddedLedger> {
  const { identityIssuer, startDevnet } = await import('#lib/devnet/devnet.ts')
  let answerIdentity: ReturnType<typeof identityIssuer> | undefined
  const devnet = await startDevnet({
    directory: dataPath(configuration.DATA_DIR, 'ledger'),
    port: configuration.DEVNET_PORT,
    profile: configuration.DEVNET_PROFILE,
    ...(configuration.DEVNET_CLOSE_MS !== undefined && { closeMs: configuration.DEVNET_CLOSE_MS }),
    lag: configuration.DEVNET_LAG,
    protocol: configuration.DEVNET_PROTOCOL === '30' ? 30 : 28,
    historyLedgers: configuration.DEVNET_HISTORY_LEDGERS,
    passphrase: configuration.DEVNET_PASSPHRASE,
    archiveUrl: `${configuration.PUBLIC_URL}/api/archive`,
    ...(relay && { relay }),
    proofs: configuration.DEVNET_PROOFS,
    identity: (request, response) => void answerIdentity?.(request, response),
  }).catch((cause: unknown) => {
    if (cause instanceof OtherVersion) throw new ConfigurationError('DATA_DIR', cause.message)
    throw cause
  })
  const [issuer, audience] = [`${devnet.url}/idp`, 'confidential-payroll']
  answerIdentity = identityIssuer({ issuer, audience, key: identityKey, publicUrl: configuration.PUBLIC_URL })
  return { devnet, issuer, audience }
}
