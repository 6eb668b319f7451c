import { parseArgs } from 'node:util'
import { Keypair } from '@stellar/stellar-sdk'
import { environment } from '#lib/config/environment.ts'
import { loadProver, proverSettings } from '#lib/prover/loading.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { formatUnits, parseUnits } from '#lib/text/money.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildTransfer, buildWithdraw } from '#lib/wallet/calls.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import { enrol, openTestNetwork, sendAndWait, type TestNetwork } from './participants.ts'
import { signInWithWallet } from './wallet-session.ts'

const USAGE = `Usage: npm run -s wallet -- <command> [options]

  new                                   a new account, funded and registered; prints its secret key
  address  --secret S…                  its G-address
  session  --secret S…                  signs in with SEP-10; prints the session token
  balance  --secret S…                  what it can spend, and what it has received and not merged (test USDC)
  merge    --secret S…                  makes what it has received spendable
  transfer --secret S… --to G… --amount 12.5
                                        builds and signs a confidential transfer; prints the signedXDR, sends nothing
  withdraw --secret S… --to G… --amount 12.5
                                        takes an amount out into the open, to an account that trusts the asset

  --service URL   the payroll service (${environment().PUBLIC_URL})
  --network URL   the deployment document of the network (http://localhost:${environment().DEVNET_PORT}/deployment.json)
`

const COMMANDS = ['new', 'address', 'session', 'balance', 'merge', 'transfer', 'withdraw'] as const

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean' },
    secret: { type: 'string' },
    to: { type: 'string' },
    amount: { type: 'string' },
    service: { type: 'string', default: environment().PUBLIC_URL },
    network: { type: 'string', default: `http://localhost:${environment().DEVNET_PORT}/deployment.json` },
  },
})

/** The client side on the command line: keys and amounts stay in this process. */
async function run(name: string | undefined): Promise<string> {
  if (values.help) return USAGE
  const command = COMMANDS.find((known) => known === name)
  if (command === undefined) throw new Error(USAGE)
  if (command === 'new') return await proving(async (network) => (await enrol(network)).signer.secret())
  const signer = Keypair.fromSecret(given('secret'))
  if (command === 'address') return signer.publicKey()
  if (command === 'session') return await signInWithWallet(values.service, signer)
  switch (command) {
    case 'balance':
      return await describeBalance(await openNetwork(), signer)
    case 'merge': {
      const network = await openNetwork()
      return await send(network, (await buildMerge(network, signer)).signedXdr)
    }
    case 'transfer':
      return await proving(async (network) => {
        const holder = openHolder(signer, network.token)
        return (await buildTransfer(network, holder, await spending(network, holder))).signedXdr
      })
    case 'withdraw':
      return await proving(async (network) => {
        const holder = openHolder(signer, network.token)
        return await send(network, (await buildWithdraw(network, holder, await spending(network, holder))).signedXdr)
      })
  }
}

/** The network; of a command that makes no proof. */
const openNetwork = (): Promise<TestNetwork> => openTestNetwork(values.network)

/**
 * Runs a command that makes a proof. A fault of the configuration is found before the network is asked. What is said of
 * proofs goes to standard error, apart from the answer.
 */
async function proving(command: (network: TestNetwork) => Promise<string>): Promise<string> {
  const prover = await loadProver(proverSettings(environment()), console.error)
  try {
    return await command(await openTestNetwork(values.network, announceProofs(prover, 1, console.error)))
  } finally {
    await prover.destroy?.()
  }
}

function given(option: 'secret' | 'to' | 'amount'): string {
  const value = values[option]
  if (value === undefined) throw new Error(`--${option} is missing\n\n${USAGE}`)
  return value
}

function balanceOf(network: TestNetwork, { signer, keys }: Holder) {
  return syncBalance(network, { address: signer.publicKey(), vk: keys.vk })
}

async function spending(network: TestNetwork, holder: Holder) {
  const { spendable } = await balanceOf(network, holder)
  return { to: given('to'), amount: parseUnits(given('amount')), opening: spendable }
}

async function describeBalance(network: TestNetwork, signer: Keypair): Promise<string> {
  const { spendable, receiving } = await balanceOf(network, openHolder(signer, network.token))
  return `spendable ${formatUnits(spendable.value)}  received ${formatUnits(receiving.value)}`
}

async function send(network: TestNetwork, signedXdr: string): Promise<string> {
  await sendAndWait(network, signedXdr)
  return 'done'
}

try {
  console.log(await run(positionals[0]))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  if (error instanceof TypeError && error.message === 'fetch failed') {
    console.error(`Nothing answers at ${values.network} or ${values.service}: --network and --service name others.`)
  }
  process.exitCode = 1
}
