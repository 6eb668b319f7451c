import { Address, type xdr } from '@stellar/stellar-sdk'
import { z } from 'zod'
import type { Network } from '#lib/stellar/network.ts'
import { decodeEnvelope } from '#lib/stellar/node/envelope.ts'
import { contractErrorOf, decodeResult, resultCodeOf } from '#lib/stellar/transaction.ts'

/** A transaction as a ledger included it. Shows only address arguments: the others are the client's proof. */
export type LedgerTransaction = Exclude<Awaited<ReturnType<typeof readLedgerTransaction>>, { oldestLedger: number }>

const FOUND = z.discriminatedUnion('status', [
  z.object({ status: z.literal('NOT_FOUND'), oldestLedger: z.number().int() }),
  z.object({
    status: z.enum(['SUCCESS', 'FAILED']),
    ledger: z.number().int(),
    createdAt: z.coerce.number(),
    envelopeXdr: z.string(),
    resultXdr: z.string(),
    diagnosticEventsXdr: z.array(z.string()).nullish(),
  }),
])

/**
 * Reads a transaction, or returns the oldest ledger of the RPC if the response is NOT_FOUND.
 * @throws LedgerError `unavailable`
 */
export async function readLedgerTransaction(network: Network, hash: string) {
  const response = await network.call('getTransaction', { hash }, FOUND)
  if (response.status === 'NOT_FOUND') return { oldestLedger: response.oldestLedger }
  const result = decodeResult(response.resultXdr)
  const { envelope, source, feeBump } = decodeEnvelope(response.envelopeXdr, network.passphrase)
  return {
    /** the account whose sequence number it uses */
    source,
    feeSource: feeBump?.feeSource ?? source,
    isFeeBump: feeBump !== undefined,
    operations: envelope.tx.operations.map(readOperation),
    succeeded: response.status === 'SUCCESS',
    ledger: response.ledger,
    closedAt: new Date(response.createdAt * 1000),
    /** in stroops */
    feeCharged: result.feeCharged,
    resultCode: resultCodeOf(result),
    contractError: contractErrorOf(response.diagnosticEventsXdr ?? []),
  }
}

/** The XDR name of an operation, and of a contract call its name, its contract and its address arguments. */
function readOperation({ body }: xdr.Operation) {
  if (body.type !== 'invokeHostFunction') return { type: body.type }
  const { hostFunction } = body.invokeHostFunctionOp
  if (hostFunction.type !== 'hostFunctionTypeInvokeContract') return { type: body.type }
  const { contractAddress, functionName, args } = hostFunction.invokeContract
  const addresses = args.flatMap((value) => (value.type === 'scvAddress' ? [Address.fromScVal(value).toString()] : []))
  const contract = Address.fromScAddress(contractAddress).toString()
  return { type: body.type, call: { contract, name: functionName.toString(), addresses } }
}
