import { randomBytes } from 'node:crypto'
import { Account, BASE_FEE, type Keypair, Operation, StrKey, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'
import { signEd25519 } from '#lib/stellar/node/ed25519.ts'

/**
 * The identity of this server for wallets (SEP-10). `homeDomain` and `webAuthDomain` are hosts with an optional port.
 * They come from configuration, because the caller controls the Host header. `signer` signs only challenges.
 */
export interface Sep10Settings {
  signer: Keypair
  networkPassphrase: string
  homeDomain: string
  webAuthDomain: string
}

const CHALLENGE_LIFETIME_SECONDS = 300

/** The query of a challenge request (SEP-10, "Request"). */
export const challengeQuery = z.object({
  account: z.string().optional().meta({ description: 'the account address (G…) that signs in' }),
  memo: z.string().optional().meta({ description: 'not supported; refused unless it is empty' }),
  home_domain: z.string().optional().meta({ description: 'this service’s home domain, or none' }),
})
type ChallengeRequest = z.output<typeof challengeQuery>

/** The response (SEP-10, "Response"). */
export const challengeShape = z.object({
  transaction: z.string().meta({ description: 'the transaction envelope for the wallet to sign, base64 XDR' }),
  network_passphrase: z.string().meta({ description: 'the network of the signature' }),
})

/**
 * Builds a challenge for the account to sign. Stores nothing: the server's signature and the time bounds later prove that
 * it was issued. Includes only the account from the request, so that the signing key never signs a text chosen by the
 * caller. Ignores client_domain, which is not supported.
 * @param nonce 48 random bytes
 * @throws Refusal `account-required`, `account-invalid`, `memo-invalid`, `home-domain-invalid`
 */
export function buildChallenge(
  settings: Sep10Settings,
  request: ChallengeRequest,
  now: Date,
  nonce: Uint8Array = randomBytes(48),
): z.output<typeof challengeShape> {
  const account = requireAccount(settings, request)
  const minTime = Math.floor(now.getTime() / 1000)
  const server = settings.signer.publicKey()
  // A transaction with sequence number 0 can never be applied, so the wallet's signature authorizes nothing.
  const transaction = new TransactionBuilder(new Account(server, '-1'), {
    fee: BASE_FEE,
    networkPassphrase: settings.networkPassphrase,
    timebounds: { minTime, maxTime: minTime + CHALLENGE_LIFETIME_SECONDS },
  })
    .addOperation(
      Operation.manageData({
        source: account,
        name: `${settings.homeDomain} auth`,
        value: Buffer.from(nonce).toString('base64'),
      }),
    )
    .addOperation(Operation.manageData({ source: server, name: 'web_auth_domain', value: settings.webAuthDomain }))
    .build()
  transaction.addDecoratedSignature(
    new xdr.DecoratedSignature({
      hint: settings.signer.signatureHint(),
      signature: signEd25519(settings.signer.rawSecretKey(), transaction.hash()),
    }),
  )
  return { transaction: transaction.toXdr(), network_passphrase: settings.networkPassphrase }
}

function requireAccount(settings: Sep10Settings, request: ChallengeRequest): string {
  const { account, memo, home_domain } = request
  if (!account) throw new Refusal('account-required')
  if (!StrKey.isValidEd25519PublicKey(account)) {
    throw new Refusal(
      'account-invalid',
      'account must be an account address (G…); muxed and contract accounts cannot sign in',
    )
  }
  if (account === settings.signer.publicKey()) {
    throw new Refusal('account-invalid', "account is the server's own signing key")
  }
  // If the memo were ignored, the users of a pooled account would share one session.
  if (memo) throw new Refusal('memo-invalid', 'memo is not supported')
  // Host names have no case.
  if (home_domain && home_domain.toLowerCase() !== settings.homeDomain.toLowerCase()) {
    throw new Refusal('home-domain-invalid', `home_domain must be ${settings.homeDomain}`)
  }
  return account
}
