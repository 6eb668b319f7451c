export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === 'nodejs') {
    const { boot } = await import('#lib/server/start.ts')
    await boot()
  }
}
