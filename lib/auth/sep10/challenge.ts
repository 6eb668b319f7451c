import { randomBytes } from 'node:crypto'
import { Account, BASE_FEE, type Keypair, Operation, StrKey, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'
import { signEd25519 } from '#lib/stellar/ed25519.ts'

/**
 * The identity of this server towards a wallet (SEP-10). `homeDomain` and `webAuthDomain` are hosts, with the port if
 * there is one, and come from configuration, since the caller writes the Host header. `signer` signs challenges and
 * nothing else.
 */
export interface Sep10Settings {
  signer: Keypair
  networkPassphrase: string
  homeDomain: string
  webAuthDomain: string
}

/** Seconds for which a challenge is valid (specification, Limits). */
const CHALLENGE_LIFETIME = 300

/** The query of a challenge request (SEP-10, "Request"). */
export const challengeQuery = z.object({
  account: z.string().optional().meta({ description: 'the account address (G…) that signs in' }),
  memo: z.string().optional().meta({ description: 'not supported: one that is not empty is refused' }),
  home_domain: z.string().optional().meta({ description: 'none, or that of this service' }),
})
type ChallengeRequest = z.output<typeof challengeQuery>

/** The answer to it (SEP-10, "Response"). */
export const challengeShape = z.object({
  transaction: z.string().meta({ description: 'what the wallet is to sign: a transaction envelope, base64 XDR' }),
  network_passphrase: z.string().meta({ description: 'the network that the signature is for' }),
})

/**
 * A challenge for the account to sign. Nothing is stored: the server's signature and
 * the time bounds prove later that it was issued. Of what the caller sends only the account enters it, so that the
 * signing key never signs a text that the caller has chosen. A client_domain is not supported, hence ignored.
 * @param nonce 48 random bytes
 * @throws Refusal `account-required`, `account-invalid`, `memo-invalid`, `home-domain-invalid`
 */
export function buildChallenge(
  settings: Sep10Settings,
  request: ChallengeRequest,
  now: Date,
  nonce: Uint8Array = randomBytes(48),
): z.output<typeof challengeShape> {
  const account = acceptRequest(settings, request)
  const minTime = Math.floor(now.getTime() / 1000)
  const server = settings.signer.publicKey()
  // Sequence number 0 can never be applied, so what the wallet signs moves nothing.
  const transaction = new TransactionBuilder(new Account(server, '-1'), {
    fee: BASE_FEE,
    networkPassphrase: settings.networkPassphrase,
    timebounds: { minTime, maxTime: minTime + CHALLENGE_LIFETIME },
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

function acceptRequest(settings: Sep10Settings, request: ChallengeRequest): string {
  const { account, memo, home_domain } = request
  if (!account) throw new Refusal('account-required', 'account required')
  if (!StrKey.isValidEd25519PublicKey(account)) {
    throw new Refusal(
      'account-invalid',
      'account must be an account address (G…); muxed and contract accounts cannot sign in',
    )
  }
  if (account === settings.signer.publicKey()) {
    throw new Refusal('account-invalid', "account is the server's own signing key")
  }
  // Users of one pooled account would fall into one session if their memo were dropped.
  if (memo) throw new Refusal('memo-invalid', 'memo is not supported')
  if (home_domain && home_domain !== settings.homeDomain) {
    throw new Refusal('home-domain-invalid', `home_domain is not served here; it is ${settings.homeDomain}`)
  }
  return account
}
