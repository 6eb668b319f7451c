import { defineConfig } from 'vite'

export default defineConfig({
  // They load their WebAssembly from beside the module, which pre-bundling would move.
  optimizeDeps: { exclude: ['@aztec/bb.js', '@noir-lang/acvm_js', '@noir-lang/noirc_abi', '@noir-lang/noir_js'] },
})
