import { type Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { z } from 'zod'

/** The service answered with an error; `message` is its `error`. */
export class ServiceError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'ServiceError'
    this.status = status
  }
}

const CHALLENGE = z.object({ transaction: z.string(), network_passphrase: z.string() })
const SESSION = z.object({ session: z.string(), kind: z.literal('ledger'), sub: z.string() })
const TRANSFER = z.object({ hash: z.string(), status: z.literal('SUCCESS') })

/** What a frontend does with the service, over HTTP alone. `base` is its origin. */
export interface PayrollClient {
  /** Signs in with SEP-10. Resolves to the session token. */
  signIn(wallet: Keypair): Promise<string>
  /** Has a signed confidential transfer sponsored, for a payout if that is named. Resolves to its hash on the ledger. */
  transfer(session: string, signedXDR: string, payoutId?: string): Promise<string>
  /** Asks for `path`, with GET or, if there is a body, with POST. Throws ServiceError. */
  ask<Schema extends z.ZodType>(
    schema: Schema,
    session: string,
    path: string,
    body?: unknown,
  ): Promise<z.output<Schema>>
}

export function payrollClient(base: string): PayrollClient {
  return {
    signIn: async (wallet) => {
      const challenge = await ask(CHALLENGE, `${base}/api/auth/sep10/challenge?account=${wallet.publicKey()}`)
      const transaction = TransactionBuilder.fromXdr(challenge.transaction, challenge.network_passphrase)
      transaction.sign(wallet)
      const { session } = await ask(SESSION, `${base}/api/auth/sep10/verify`, { transaction: transaction.toXdr() })
      return session
    },
    transfer: async (session, signedXDR, payoutId) => {
      const { hash } = await ask(TRANSFER, `${base}/api/transfer`, { signedXDR, payoutId }, session)
      return hash
    },
    ask: (schema, session, path, body) => ask(schema, `${base}/api${path}`, body, session),
  }
}

async function ask<Schema extends z.ZodType>(
  schema: Schema,
  url: string,
  body?: unknown,
  session?: string,
): Promise<z.output<Schema>> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(session !== undefined && { Authorization: `Bearer ${session}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer: unknown = await response.json()
  if (!response.ok) {
    throw new ServiceError(response.status, z.object({ error: z.string() }).parse(answer).error)
  }
  return schema.parse(answer)
}

const READY = z.object({ sponsor: z.object({ address: z.string() }) })

/** The account that pays the fees, as the service itself says. */
export async function readSponsorAddress(base: string): Promise<string> {
  return READY.parse(await (await fetch(`${base}/api/ready`)).json()).sponsor.address
}
