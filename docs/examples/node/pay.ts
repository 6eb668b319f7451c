import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
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

// Two accounts: friendbot creates them, then they register with the confidential token.
const employer = await enrol()
const contractor = await enrol()

// Sign in: the wallet signs a challenge (SEP-10). The client sends the session from now on.
let session = ''
const client = createPayrollClient({ baseUrl: `${service}/api`, session: () => session })
session = await signIn(client, employer.signer)

// Test USDC; a merge makes it spendable.
await take(client.POST('/funding/faucet'))
await send((await buildMerge(deployment, employer.signer)).signedXdr)

// Proved and signed here; the service pays the fee.
const { spendable } = await syncBalance(deployment, employer)
const transfer = { to: contractor.address, amount: 12_5000000n, opening: spendable }
const { signedXdr } = await buildTransfer(deployment, employer, transfer)
console.log(await take(client.POST('/transfer', { body: { signedXDR: signedXdr } })))

const { receiving } = await syncBalance(deployment, contractor)
console.log('received, in base units:', receiving.value)
await prover.destroy()

async function enrol() {
  const signer = keypairSigner(Keypair.random())
  await deployment.rpc.fundAddress(signer.address)
  const holder = await openWallet(signer, deployment.token)
  await send((await buildRegister(deployment, holder, { auditorId: document.auditor.id })).signedXdr)
  return holder
}

async function send(envelope: string) {
  const { hash } = await deployment.rpc.sendTransaction(TransactionBuilder.fromXdr(envelope, deployment.passphrase))
  await deployment.rpc.pollTransaction(hash, { attempts: 60 })
}
