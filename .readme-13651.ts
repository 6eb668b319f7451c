import { Keypair, rpc, TransactionBuilder } from '@stellar/stellar-sdk'
import { prover } from '#lib/devnet/devnet.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildMerge, buildRegister, buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'

const api = 'http://localhost:38861/api'
const { rpcUrl, passphrase, contracts, auditor } = await get('http://localhost:41095/deployment.json')
const server = new rpc.Server(rpcUrl, { allowHttp: true })
const network = { rpc: server, passphrase, token: contracts.token, auditor: contracts.auditor, prover }

// Two accounts: XLM from friendbot, then registered with the confidential token.
const [employer, contractor] = await Promise.all([enrol(), enrol()])

// SEP-10: the challenge, signed by the wallet, buys a session.
const challenge = await get(`${api}/auth/sep10/challenge?account=${employer.signer.publicKey()}`)
const login = TransactionBuilder.fromXdr(challenge.transaction, challenge.network_passphrase)
login.sign(employer.signer)
const { session } = await post('/auth/sep10/verify', { transaction: login.toXdr() })

// Confidential test USDC; a merge makes what was received spendable.
await post('/funding/faucet', undefined, session)
await submit((await buildMerge(network, employer.signer)).signedXdr)

// Build and sign here, let the service pay the fee.
const { spendable } = await balanceOf(employer)
const to = contractor.signer.publicKey()
const transfer = await buildTransfer(network, employer, { to, amount: 12_5000000n, opening: spendable })
console.log(await post('/transfer', { signedXDR: transfer.signedXdr }, session))
console.log('received, in base units:', (await balanceOf(contractor)).receiving.value)

async function enrol() {
  const signer = Keypair.random()
  await server.fundAddress(signer.publicKey())
  const holder = openHolder(signer, network.token)
  await submit((await buildRegister(network, holder, { auditorId: auditor.id })).signedXdr)
  return holder
}

function balanceOf({ signer, keys }: Awaited<ReturnType<typeof enrol>>) {
  return syncBalance(network, { address: signer.publicKey(), vk: keys.vk })
}

async function submit(signedXdr: string) {
  const { hash } = await server.sendTransaction(TransactionBuilder.fromXdr(signedXdr, passphrase))
  await server.pollTransaction(hash, { attempts: 60 })
}

async function get(url: string) {
  return (await fetch(url)).json()
}

async function post(path: string, body: unknown, session = '') {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${session}` }
  const response = await fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) ?? null })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}
