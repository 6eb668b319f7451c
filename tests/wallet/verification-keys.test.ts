import { rpc, xdr } from '@stellar/stellar-sdk'
import { describe, expect, test } from 'vitest'
import { readVerificationKeys } from '#lib/prover/node/circuit-folder.ts'
import { isEmbeddedVerifier, requireSameKeys } from '#lib/prover/node/network-keys.ts'
import { prover } from '#lib/prover/stand-in.ts'
import type { TokenOnNetwork } from '#lib/wallet/deployment.ts'
import { findForeignCircuit } from '#lib/wallet/verification-keys.ts'

const CONTRACT = 'CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC'
const KEY = new Uint8Array(1_760)
const keyOf = (fill: number) => new Uint8Array(1_760).fill(fill)

type Simulation = rpc.Api.SimulateTransactionResponse

/** A network whose verifier responds to `get_verification_key` with these, in order. */
function networkOf(...answers: (Uint8Array | string)[]): TokenOnNetwork {
  const server = new rpc.Server('http://127.0.0.1:1', { allowHttp: true })
  server.simulateTransaction = async () => {
    const answer = answers.shift() ?? ''
    if (typeof answer === 'string') return { id: '', latestLedger: 1, error: answer, events: [], _parsed: true }
    // The SDK's result for `{}`: an RPC whose response is meaningless.
    if (answer.length === 0) return { id: '', latestLedger: 1, events: [], _parsed: true } as unknown as Simulation
    return { result: { auth: [], retval: xdr.ScVal.scvBytes(answer) } } as unknown as Simulation
  }
  return { rpc: server, passphrase: 'Test', token: CONTRACT }
}
const find = (...answers: (Uint8Array | string)[]) => findForeignCircuit(networkOf(...answers), CONTRACT, prover)

describe('a circuit whose proofs the network rejects', () => {
  test('is found by its key', async () => {
    expect(await find(KEY, KEY, KEY)).toBeUndefined()
    expect(await find(KEY, KEY.with(9, 1), KEY)).toEqual({ circuit: 'transfer', networkKey: KEY.with(9, 1) })
  })

  test('is found where the verifier has no key', async () => {
    expect(await find(KEY, KEY, 'HostError: Error(Contract, #3401)\n\nEvent log')).toEqual({
      circuit: 'withdraw',
      networkKey: undefined,
    })
  })

  test('is not reported when the verifier fails in another way', async () => {
    await expect(find('HostError: Error(Storage, MissingValue)')).rejects.toMatchObject({ code: 'would-fail' })
  })

  test('is not reported when the response has no key', async () => {
    await expect(find(KEY, new Uint8Array())).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('is not reported when the prover has no keys', async () => {
    expect(await findForeignCircuit(networkOf(), CONTRACT, { prove: prover.prove })).toBeUndefined()
  })
})

describe('the error for another key', () => {
  const real = { ...prover, verificationKeys: { register: keyOf(1), transfer: keyOf(2), withdraw: keyOf(3) } }

  test('names stand-in proofs if only one side has them', async () => {
    await expect(requireSameKeys(networkOf(KEY), CONTRACT, real)).rejects.toThrow(
      'DEVNET_PROOFS: the ledger accepts stand-in proofs only: set it to stand-in here, too',
    )
    await expect(requireSameKeys(networkOf(keyOf(1)), CONTRACT, prover)).rejects.toThrow(
      'DEVNET_PROOFS: the ledger verifies real proofs, and rejects stand-ins',
    )
  })

  test('names the circuit otherwise', async () => {
    await expect(requireSameKeys(networkOf(keyOf(1), keyOf(9)), CONTRACT, real)).rejects.toThrow(
      "PROVER_CIRCUITS: the network's verifier has another key, or none, for the circuit transfer",
    )
    await expect(requireSameKeys(networkOf(keyOf(1), keyOf(2), keyOf(3)), CONTRACT, real)).resolves.toBeUndefined()
  })
})

test('an embedded ledger is recognized by its verification keys', async () => {
  const { register } = await readVerificationKeys('lib/prover/circuits')
  const recognize = (answer: Uint8Array | string) => isEmbeddedVerifier(networkOf(answer), CONTRACT)
  expect(await Promise.all([register, KEY, keyOf(1), 'HostError: Error(Contract, #3401)'].map(recognize))).toEqual([
    true,
    true,
    false,
    false,
  ])
})
