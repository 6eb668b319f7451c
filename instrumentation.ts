export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === 'nodejs') {
    const { boot } = await import('#lib/server/start.ts')
    // A private module of Next: the same check as its own, whose failure is a 500.
    const { parseAndValidateFlightRouterState } = await import(
      'next/dist/server/app-render/parse-and-validate-flight-router-state.js'
    )
    await boot((header) => {
      try {
        parseAndValidateFlightRouterState(header)
        return true
      } catch {
        return false
      }
    })
  }
}
