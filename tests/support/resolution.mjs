// Preloaded into every process that a test starts, npm's older Node.js included. Node.js 24 parses the 130 KB of `exports`
// in drizzle-orm's package.json once for each file it loads from there, a third of a process's CPU time at start.
// Inside the package, a relative specifier names a module as it is.
import * as nodeModule from 'node:module'

const PACKAGE = '/node_modules/drizzle-orm/'

const resolved = new Map()

nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
    const { parentURL } = context
    if (specifier.startsWith('.') && parentURL?.includes(PACKAGE) && parentURL.endsWith('.js')) {
      return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true }
    }
    if (!specifier.startsWith('drizzle-orm') || !context.conditions.includes('import')) return next(specifier, context)
    const known = resolved.get(specifier) ?? { ...next(specifier, context), format: 'module', shortCircuit: true }
    resolved.set(specifier, known)
    return known
  },
})
