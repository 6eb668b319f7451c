// Preloaded into every process that a test starts, npm's older Node.js included. Most of a process's CPU time at start
// went into finding modules.
import * as nodeModule from 'node:module'

const PACKAGE = '/node_modules/drizzle-orm/'
const SDK = '@stellar/stellar-sdk'
const ENTRY = /\/node_modules\/@stellar\/stellar-sdk\/lib\/(esm|cjs)\/index\.js$/

const resolved = new Map()

// A killed process would not write the compile cache that halves the start of the next one.
setInterval(() => nodeModule.flushCompileCache?.(), 2_000).unref()

/**
 * The SDK consists of 600 files. Its package also has all of them in one, with the same exports, which loads in a tenth
 * of the time. Another package's nested SDK stays as it is, as do bundles and the images, which load the other files.
 */
function bundledSdk(url) {
  if (!ENTRY.test(url) || url.indexOf('/node_modules/') !== url.lastIndexOf('/node_modules/')) return undefined
  return url.replace(ENTRY, `/node_modules/${SDK}/dist/stellar-sdk.js`)
}

nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
    const { parentURL } = context
    const isImported = context.conditions.includes('import')
    // Node.js 24 parses the 130 KB of `exports` in drizzle-orm's package.json once for each file it loads from there.
    // Inside the package, a relative specifier names a module as it is.
    if (specifier.startsWith('.') && parentURL?.includes(PACKAGE) && parentURL.endsWith('.js')) {
      return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true }
    }
    if (specifier.startsWith('drizzle-orm') && isImported) {
      const known = resolved.get(specifier) ?? { ...next(specifier, context), format: 'module', shortCircuit: true }
      resolved.set(specifier, known)
      return known
    }
    const found = next(specifier, context)
    const bundle = bundledSdk(found.url)
    if (!bundle) return found
    const format = isImported ? 'module' : 'commonjs'
    return { url: isImported ? `${bundle}?module` : bundle, format, shortCircuit: true }
  },
  load(url, context, next) {
    if (!url.endsWith('/stellar-sdk.js?module')) return next(url, context)
    // The text of a module must have the names that it exports.
    const names = Object.keys(nodeModule.createRequire(url)(SDK))
    const source = `import { createRequire } from 'node:module'
      export const { ${names.join(', ')} } = createRequire(import.meta.url)('${SDK}')`
    return { source, format: 'module', shortCircuit: true }
  },
})
