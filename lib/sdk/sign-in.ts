import { StellarToml, StrKey, TransactionBuilder, WebAuth } from '@stellar/stellar-sdk'
import type { Signer } from '#lib/wallet/signer.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import { type PayrollClient, take } from './payroll-client.ts'

export interface SignInOptions {
  /**
   * The service's home domain, a host with an optional port, if the client's `baseUrl` names another address of it. By
   * default the host of `baseUrl`. That address can then sign in to this service as the account.
   */
  homeDomain?: string | undefined
}

/**
 * Signs in with a wallet (SEP-10): the signer signs a challenge of the service at the client's `baseUrl`, whose
 * `/.well-known/stellar.toml`, read with the global `fetch`, names the key that signs its challenges. Resolves to the session
 * token. An account that needs several signatures uses `beginSignIn` and `finishSignIn`.
 * @throws PayrollError; WalletError `challenge-invalid` for a challenge of another service, or one that is more than a challenge
 */
export async function signIn(client: PayrollClient, signer: Signer, options: SignInOptions = {}): Promise<string> {
  return await finishSignIn(client, await beginSignIn(client, signer, options))
}

/**
 * Requests a challenge for an account, and signs it with the first of its signers. The others add theirs with `addToChallenge`.
 * Resolves to the challenge, base64 XDR, which is valid for five minutes.
 * @param options.account the account, if it is not the signer's own
 * @throws PayrollError; WalletError `challenge-invalid`
 */
export async function beginSignIn(
  client: PayrollClient,
  signer: Signer,
  { account = signer.address, ...options }: SignInOptions & { account?: string } = {},
): Promise<string> {
  const challenge = await take(client.GET('/auth/sep10/challenge', { params: { query: { account } } }))
  await requireOwn(client, challenge, { ...options, account })
  return await sign(signer, challenge)
}

/**
 * Adds another signer's signature to a challenge of an account with several signers.
 * @param options.account that account: a challenge of another one is not signed, nor is one of the signer's own account, which would
 *   sign a stranger in as the signer
 * @throws WalletError `challenge-invalid`
 */
export async function addToChallenge(
  client: PayrollClient,
  signer: Signer,
  challenge: { transaction: string; networkPassphrase: string },
  options: SignInOptions & { account: string },
): Promise<string> {
  if (options.account === signer.address)
    throw new WalletError('challenge-invalid', 'a challenge of the signer’s own account is not signed for others')
  const given = { transaction: challenge.transaction, network_passphrase: challenge.networkPassphrase }
  await requireOwn(client, given, options)
  return await sign(signer, given)
}

const sign = (signer: Signer, { transaction, network_passphrase: networkPassphrase }: Challenge) =>
  signer.signTransaction(transaction, { networkPassphrase })

/** Exchanges a challenge with the signatures that its account needs for a session token. @throws PayrollError */
export async function finishSignIn(client: PayrollClient, transaction: string): Promise<string> {
  return (await take(client.POST('/auth/sep10/verify', { body: { transaction } }))).session
}

/** How long the service's stellar.toml may take. */
const TIMEOUT_MS = 30_000

interface Challenge {
  transaction: string
  network_passphrase: string
}

/**
 * Checks a challenge as SEP-10 requires of clients: otherwise a service could forward one of another service, and sign in
 * there as the account. @throws WalletError `challenge-invalid`
 */
async function requireOwn(
  client: Pick<PayrollClient, 'baseUrl'>,
  challenge: Challenge,
  options: SignInOptions & { account?: string },
) {
  const { origin, host, protocol } = new URL(client.baseUrl, globalThis.location?.href)
  const { homeDomain = host, account } = options
  const invalid = (reason: string, cause?: unknown) =>
    new WalletError('challenge-invalid', `the sign-in challenge of ${origin} is not signed: ${reason}`, { cause })
  const toml = `${origin}/.well-known/stellar.toml`
  // The resolver's own timeout would keep the process alive until it fires.
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('it does not respond')), TIMEOUT_MS)
  const resolving = StellarToml.Resolver.resolve(host, { allowHttp: protocol === 'http:' })
  const { SIGNING_KEY: key } = await Promise.race([resolving, late.promise])
    .catch((cause: unknown) => {
      throw invalid(`${toml} cannot be read`, cause)
    })
    .finally(() => clearTimeout(timer))
  if (typeof key !== 'string' || !StrKey.isValidEd25519PublicKey(key)) throw invalid(`${toml} names no SIGNING_KEY`)
  const { transaction, network_passphrase } = challenge
  let read: ReturnType<typeof WebAuth.readChallengeTx>
  try {
    read = WebAuth.readChallengeTx(transaction, key, network_passphrase, homeDomain, homeDomain)
  } catch (cause) {
    const other = domainsOf(challenge).find((domain) => domain !== homeDomain)
    if (other === undefined) throw invalid(cause instanceof Error ? cause.message : String(cause), cause)
    const advice = 'if this address is that service’s, name it as homeDomain (--home-domain)'
    throw invalid(`it is for ${JSON.stringify(other)}, not for ${JSON.stringify(homeDomain)}; ${advice}`, cause)
  }
  // The SDK leaves these to its caller.
  const { tx, clientAccountID, memo } = read
  if (account !== undefined && clientAccountID !== account) throw invalid('it is for another account')
  if (memo !== null) throw invalid('it has a memo')
  const [, ...others] = tx.operations
  if (others.some(({ source }) => source !== key)) throw invalid('it has an operation of another account')
  if (domainsOf(challenge).length < 2) throw invalid('it has no web_auth_domain')
}

/** The home domain and the web_auth_domains that a transaction names. */
function domainsOf({ transaction, network_passphrase }: Challenge): string[] {
  try {
    const [first, ...others] = TransactionBuilder.fromXdr(transaction, network_passphrase).operations
    const home = first?.type === 'manageData' ? [first.name.replace(/ auth$/, '')] : []
    const web = others.flatMap((operation) =>
      operation.type === 'manageData' && operation.name === 'web_auth_domain' && operation.value
        ? [new TextDecoder().decode(operation.value)]
        : [],
    )
    return [...home, ...web]
  } catch {
    return []
  }
}
