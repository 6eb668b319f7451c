import { resource } from '#lib/http/resource.ts'
import { PROMETHEUS_TYPE } from '#lib/observability/prometheus.ts'
import { requireScraper, scrape } from '#lib/operator/scrape.ts'
import { service } from '#lib/server/services.ts'

/** What the service counts, for Prometheus. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    requireScraper(desk.settings.metricsToken, request)
    return new Response(await scrape(desk), { headers: { 'Content-Type': PROMETHEUS_TYPE } })
  },
})
