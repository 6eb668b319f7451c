import { resource } from '#lib/http.ts'
import { requireScraper, scrape } from '#lib/metrics/scrape.ts'
import { PROMETHEUS_TYPE } from '#lib/prometheus.ts'
import { service } from '#lib/service.ts'

/** What the service counts, for Prometheus. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource({
  GET: async (request) => {
    const desk = await service()
    requireScraper(desk.settings.metricsToken, request)
    return new Response(await scrape(desk), { headers: { 'Content-Type': PROMETHEUS_TYPE } })
  },
})
