import { defineConfig } from 'vite'

export default defineConfig({
  // The prover finds its workers and WebAssembly next to its modules. Vite's development server would move them.
  optimizeDeps: { exclude: ['@aztec/bb.js', '@noir-lang/acvm_js', '@noir-lang/noirc_abi', '@noir-lang/noir_js'] },
})
