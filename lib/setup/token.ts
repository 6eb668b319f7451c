import { Address, type xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { ConfigurationError } from '#lib/config/environment.ts'
import { isEmbeddedVerifier } from '#lib/prover/node/network-keys.ts'
import { readInstance, readUnderlyingAsset, type StellarAsset, settingOf } from '#lib/stellar/asset.ts'
import { LedgerError, ledgerUnreachable } from '#lib/stellar/ledger-error.ts'
import type { Network } from '#lib/stellar/network.ts'
import { readAuditorKey } from '#lib/wallet/account.ts'
import { WalletError } from '#lib/wallet/wallet-error.ts'
import type { DeploymentDocument } from './document.ts'

/** A deployed token, from its ledger entries. */
export interface DeployedToken {
  /** the confidential token, C… */
  token: string
  asset: StellarAsset
  /** undefined if the network has none */
  friendbotUrl: string | undefined
  /** whether the token belongs to an embedded ledger, whose circuits are part of this project */
  isEmbedded: boolean
}

const NETWORK = z.object({ passphrase: z.string(), friendbotUrl: z.string().optional() })

/**
 * Checks a deployment document against the ledger: the RPC's network, the confidential token, and its asset, verifier
 * and auditor.
 * @throws ConfigurationError for a wrong document; LedgerError `unavailable`
 */
export async function checkDeployment(network: Network, document: DeploymentDocument): Promise<DeployedToken> {
  const { passphrase, friendbotUrl } = await network.call('getNetwork', {}, NETWORK)
  if (passphrase !== document.passphrase) throw wrong(`its RPC belongs to another network: "${passphrase}"`)
  const { token, underlying, verifier, auditor } = document.contracts
  const instance = await readInstance(network.server, token)
  if (!instance) throw wrong(`the ledger has no contract ${token}: has the network been reset?`)
  const asset = await readUnderlyingAsset(network.server, token).catch((error: unknown) => {
    const isForeign = error instanceof LedgerError && error.code === 'foreign-contract'
    throw isForeign ? wrong(`contracts.token: ${error.message}`) : error
  })
  if (underlying && underlying !== asset.contract) throw foreign('contracts.underlying', asset.contract)
  if (asset.asset.contractId(passphrase) !== asset.contract)
    throw wrong('contracts.underlying: is not the contract of the asset that it names')
  checkAsset(document, asset)
  const proofs = checkSetting(instance, 'Verifier', 'contracts.verifier', verifier)
  const registry = checkSetting(instance, 'Auditor', 'contracts.auditor', auditor)
  if (registry) await checkAuditor(network, document, registry)
  const reading = { rpc: network.server, passphrase, token }
  const isEmbedded = document.network === 'local' && proofs !== undefined && (await isEmbeddedVerifier(reading, proofs))
  return { token, asset, friendbotUrl, isEmbedded }
}

function checkAsset({ asset: expected }: DeploymentDocument, { asset, contract }: StellarAsset): void {
  if (!expected) return
  if (expected.contract && expected.contract !== contract) throw foreign('asset.contract', contract)
  if ((expected.issuer ?? undefined) !== asset.getIssuer()) throw foreign('asset.issuer', asset.getIssuer() ?? 'none')
  if (expected.code !== asset.getCode() && !asset.isNative()) throw foreign('asset.code', asset.getCode())
}

/** Returns the address in the token's setting `name`, if it has one. */
function checkSetting(
  instance: xdr.ScContractInstance,
  name: string,
  field: string,
  expected: string | undefined,
): string | undefined {
  const setting = settingOf(instance, name)
  if (setting?.type !== 'scvAddress') return undefined
  const actual = Address.fromScVal(setting).toString()
  if (expected && expected !== actual) throw foreign(field, actual)
  return actual
}

async function checkAuditor(network: Network, { auditor, contracts }: DeploymentDocument, registry: string) {
  const deployment = { rpc: network.server, passphrase: network.passphrase, token: contracts.token, auditor: registry }
  const key = await readAuditorKey(deployment, auditor.id).catch((cause: unknown) => {
    const isUnusable = cause instanceof WalletError || cause instanceof LedgerError
    throw isUnusable
      ? wrong(`auditor.id: the registry has no usable key of auditor ${auditor.id}`)
      : ledgerUnreachable(cause)
  })
  const actual = Buffer.from(key).toString('hex')
  if (auditor.key && auditor.key !== actual) throw foreign('auditor.key', actual)
}

function foreign(field: string, actual: string): ConfigurationError {
  return wrong(`${field}: the token's own is ${actual}`)
}

function wrong(problem: string): ConfigurationError {
  return new ConfigurationError('--deployment', problem)
}
