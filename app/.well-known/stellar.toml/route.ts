import { stellarToml } from '#lib/auth/sep10/stellar-toml.ts'
import { service } from '#lib/service.ts'

/** SEP-1. Every origin may read it, whatever CORS_ORIGINS says: wallets run anywhere. */
export async function GET(): Promise<Response> {
  const { settings } = await service()
  return new Response(stellarToml(settings.sep10, settings.publicUrl), {
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Access-Control-Allow-Origin': '*' },
  })
}
