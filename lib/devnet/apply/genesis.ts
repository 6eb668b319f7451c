import { Asset, type Keypair, xdr } from '@stellar/stellar-sdk'
import { type Genesis, genesisContracts } from '../host/genesis.ts'
import { makeAccount } from '../state/account.ts'
import type { LedgerContext } from '../state/ledger-context.ts'
import { accountKey } from '../state/ledger-key.ts'
import type { StoredEntry } from '../state/state.ts'
import { TOTAL_COINS } from './header.ts'
import { auditorPoint, type DevnetKeys, friendbotChannel } from './keys.ts'

/** How many accounts friendbot can fund in one ledger. */
export const FRIENDBOT_CHANNELS = 64

/** A network's asset, contracts and auditor: served as /deployment.json and stored in the network's directory. */
export interface Deployment {
  readonly asset: { readonly code: string; readonly issuer: string; readonly contract: string }
  readonly contracts: {
    readonly token: string
    readonly verifier: string
    readonly auditor: string
    readonly underlying: string
  }
  /** `key`: 128 hex digits */
  readonly auditor: { readonly id: number; readonly key: string }
  /** version of the confidential token's interface */
  readonly interface: string
}

const XLM = 10_000_000n
const ISSUER_BALANCE = 10_000n * XLM
const CHANNEL_BALANCE = 1_000n * XLM

/** The entries of ledger 1: root, issuer, friendbot's accounts and the contracts. */
export function makeGenesis(
  ledger: LedgerContext,
  keys: DevnetKeys,
  verificationKeys: Genesis['verificationKeys'],
): { entries: StoredEntry[]; deployment: Deployment } {
  const asset = new Asset('USDC', keys.issuer.publicKey())
  const auditorKey = auditorPoint(keys.auditor)
  const { entries, contracts } = genesisContracts({
    passphrase: ledger.passphrase,
    asset,
    auditorKey,
    verificationKeys,
    ledger,
  })
  const { token, verifier, auditor, underlying } = contracts
  const endowments = ISSUER_BALANCE + BigInt(FRIENDBOT_CHANNELS) * CHANNEL_BALANCE
  const account = (keypair: Keypair, balance: bigint): StoredEntry => ({
    key: accountKey(keypair.publicKey()),
    data: xdr.LedgerEntryData.account(makeAccount(keypair.publicKey(), balance, ledger.sequence)),
    lastModified: ledger.sequence,
  })
  const channels = Array.from({ length: FRIENDBOT_CHANNELS }, (_, index) =>
    account(friendbotChannel(ledger.passphrase, index), CHANNEL_BALANCE),
  )
  return {
    entries: [
      account(keys.root, TOTAL_COINS - endowments),
      account(keys.issuer, ISSUER_BALANCE),
      ...channels,
      ...entries,
    ],
    deployment: {
      asset: { code: asset.getCode(), issuer: keys.issuer.publicKey(), contract: underlying },
      contracts: { token, verifier, auditor, underlying },
      auditor: { id: 0, key: Buffer.from(auditorKey).toString('hex') },
      interface: '0.8.0',
    },
  }
}
