import { rpc, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { prover } from '#lib/prover/stand-in.ts'
import type { TokenOnNetwork } from '#lib/wallet/deployment.ts'
import { findForeignCircuit } from '#lib/wallet/verification-keys.ts'

const CONTRACT = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
const KEY = new Uint8Array(1_760)

type Simulation = rpc.Api.SimulateTransactionResponse

/** A network whose verifier answers so to `get_verification_key`, in the order of its questions. */
function networkOf(...answers: (Uint8Array | string)[]): TokenOnNetwork {
  const server = new rpc.Server('http://127.0.0.1:1', { allowHttp: true })
  server.simulateTransaction = async () => {
    const answer = answers.shift() ?? ''
    if (typeof answer === 'string') return { id: '', latestLedger: 1, error: answer, events: [], _parsed: true }
    // The SDK makes this of `{}`: an RPC that answers without sense.
    if (answer.length === 0) return { id: '', latestLedger: 1, events: [], _parsed: true } as unknown as Simulation
    return { result: { auth: [], retval: xdr.ScVal.scvBytes(answer) } } as unknown as Simulation
  }
  return { rpc: server, passphrase: 'Test', token: CONTRACT }
}
const find = (...answers: (Uint8Array | string)[]) => findForeignCircuit(networkOf(...answers), CONTRACT, prover)

describe('a circuit whose proofs the network would not take', () => {
  test('is found by its key', async () => {
    expect(await find(KEY, KEY, KEY)).toBeUndefined()
    expect(await find(KEY, KEY.with(9, 1), KEY)).toBe('transfer')
  })

  test('is one that the verifier has no key of', async () => {
    expect(await find(KEY, KEY, 'HostError: Error(Contract, #3401)\n\nEvent log')).toBe('withdraw')
  })

  test('is not reported where the verifier fails in another way', async () => {
    await expect(find('HostError: Error(Storage, MissingValue)')).rejects.toMatchObject({ code: 'would-fail' })
  })

  test('is not reported where the answer holds no key', async () => {
    await expect(find(KEY, new Uint8Array())).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('is not found where the prover does not tell its keys', async () => {
    expect(await findForeignCircuit(networkOf(), CONTRACT, { prove: prover.prove })).toBeUndefined()
  })
})
