import { Buffer } from 'buffer'

// The wallet's code uses Buffer, which browsers lack, so define it before that code is loaded.
globalThis.Buffer = Buffer
const { runPayroll } = await import('./payroll.ts')

const steps = document.querySelector('#steps')

function say(step: string): void {
  const item = document.createElement('li')
  item.textContent = step
  steps?.append(item)
}

const { searchParams } = new URL(location.href)
runPayroll(searchParams.get('api') ?? '', searchParams.get('deployment') ?? '', say).catch((error) =>
  say(String(error)),
)
