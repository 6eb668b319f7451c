import { runPayroll } from './payroll.ts'

const steps = document.querySelector('#steps')
const progress = document.querySelector('progress')

function say(step: string): void {
  const item = document.createElement('li')
  item.textContent = step
  steps?.append(item)
  if (progress) progress.value += 1
}

const { searchParams } = new URL(location.href)
const service = searchParams.get('service') ?? 'http://localhost:3000'
const network = searchParams.get('network') ?? 'http://localhost:8000/deployment.json'
runPayroll(service, network, say).catch((error) => say(String(error)))
