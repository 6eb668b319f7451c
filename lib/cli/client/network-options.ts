import { environment } from '#lib/config/environment.ts'
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

/** Opens the network of a command, with the archives that it names. */
export function openNetworkOf(
  { network, archive }: Values<typeof NETWORK_OPTIONS>,
  prover?: Prover,
): Promise<ClientNetwork> {
  const archives = archive?.filter((url) => url !== 'none')
  return openNetwork(network, prover, archives)
}
