import { jwtVerify } from 'jose'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const key = new TextEncoder().encode(process.env.SESSION_SECRET)

const QUERIES = {
  me: `SELECT i.sub, o.id, o.name FROM identities i JOIN organisations o ON o.id = i.organisation
    WHERE o.id = $1 AND $2::uuid IS NOT NULL LIMIT $3`,
  status:
    'SELECT status, settled_count, failed_count, payout_count FROM batches WHERE organisation = $1 AND id = $2 LIMIT $3',
  batches: `SELECT id, name, status, payout_count, settled_count, failed_count, created_at, started_at, completed_at
    FROM batches WHERE organisation = $1 AND $2::uuid IS NOT NULL ORDER BY created_at DESC, sequence DESC LIMIT $3`,
  payouts: `SELECT id, batch, contractor, status, address, encrypted_amount, tx_hash, error, created_at, paid_at
    FROM payouts WHERE organisation = $1 AND $2::uuid IS NOT NULL ORDER BY created_at DESC, sequence DESC LIMIT $3`,
}

/** The cheapest response on this stack: the session is verified, and one prepared statement is run. */
export async function GET(request, { params }) {
  const { read } = await params
  const [, token = ''] = request.headers.get('authorization')?.split(' ') ?? []
  await jwtVerify(token, key, { algorithms: ['HS256'] })
  const { searchParams } = new URL(request.url)
  const values = [searchParams.get('organisation'), searchParams.get('batch'), searchParams.get('rows')]
  const { rows } = await pool.query({ name: read, text: QUERIES[read], values })
  return Response.json({ rows })
}
