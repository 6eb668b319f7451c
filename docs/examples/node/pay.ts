import { Keypair } from '@stellar/stellar-sdk'
import { createPayrollClient, take } from 'confidential-payroll-sdk'
import { openProver } from 'confidential-payroll-sdk/prover'
import {
  buildMerge,
  buildRegister,
  buildTransfer,
  fetchDeployment,
  keypairSigner,
  openDeployment,
  openWallet,
  signIn,
  syncBalance,
} from 'confidential-payroll-sdk/wallet'

const [service = 'http://localhost:3000', network = 'http://localhost:8000/deployment.json'] = process.argv.slice(2)

const document = await fetchDeployment(network)
const prover = await openProver()
const deployment = openDeployment(document, prover)

// Two accounts: friendbot creates them, then they sign in and register with the confidential token.
const { holder: employer, client } = await enrol()
const { holder: contractor } = await enrol()

// Test USDC; a merge makes it spendable.
await take(client.POST('/funding/faucet'))
const merge = await buildMerge(deployment, employer.signer)
await take(client.POST('/calls', { body: { signedXDR: merge.signedXdr } }))

// Proved and signed here; the service pays the fee.
const { spendable } = await syncBalance(deployment, employer)
const transfer = { to: contractor.address, amount: 12_5000000n, opening: spendable }
const { signedXdr } = await buildTransfer(deployment, employer, transfer)
console.log(await take(client.POST('/transfer', { body: { signedXDR: signedXdr } })))

const { receiving } = await syncBalance(deployment, contractor)
console.log('received, in base units:', receiving.value)
await prover.destroy()

/** Signs in: the wallet signs a challenge (SEP-10). The service pays the fees, including the registration's. */
async function enrol() {
  const signer = keypairSigner(Keypair.random())
  await deployment.rpc.fundAddress(signer.address)
  let session = ''
  const client = createPayrollClient({ baseUrl: `${service}/api`, session: () => session })
  session = await signIn(client, signer)
  const holder = await openWallet(signer, deployment.token)
  const { signedXdr } = await buildRegister(deployment, holder, { auditorId: document.auditor.id })
  await take(client.POST('/calls', { body: { signedXDR: signedXdr } }))
  return { holder, client }
}
