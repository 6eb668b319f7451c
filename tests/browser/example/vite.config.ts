import { defineConfig } from 'vite'

export default defineConfig({
  // Their WebAssembly is found beside the module, which bundling ahead would move.
  optimizeDeps: { exclude: ['@aztec/bb.js', '@noir-lang/acvm_js', '@noir-lang/noirc_abi', '@noir-lang/noir_js'] },
})
