import { environment } from '#lib/config/environment.ts'
import { parseUnits } from '#lib/text/money.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { Values } from '../process/command.ts'
import { type ClientNetwork, openNetwork } from './participants.ts'

/** The options that name a network and its archives. */
export const NETWORK_OPTIONS = {
  archive: { type: 'string', multiple: true },
  network: { type: 'string', default: `http://localhost:${environment().DEVNET_PORT}/deployment.json` },
} as const

export const NETWORK_USAGE = `  --archive URL   an archive with the events that the RPC has dropped; may be repeated; none: use the RPC alone
                  (default: the archive in the deployment document)
  --network FILE_OR_URL
                  the deployment document of the network
                  (${NETWORK_OPTIONS.network.default}, from DEVNET_PORT)
`

/** Opens the network of a command, with the archives and the bound on fees (XLM) that it names. */
export async function openNetworkOf(
  { network, archive, 'max-fee': maxFee }: Values<typeof NETWORK_OPTIONS> & { 'max-fee'?: string | undefined },
  prover?: Prover,
): Promise<ClientNetwork> {
  const bound = maxFee === undefined ? {} : { maxResourceFee: stroopsOf(maxFee) }
  const archives = archive?.filter((url) => url !== 'none')
  return { ...(await openNetwork(network, prover, archives)), ...bound }
}

function stroopsOf(maxFee: string): bigint {
  try {
    return parseUnits(maxFee)
  } catch (cause) {
    throw new Error('--max-fee is not an amount of XLM, a decimal of at most seven places', { cause })
  }
}
