import { runPayroll, type Say } from './payroll.ts'

const steps = document.querySelector('#steps')
const progress = document.querySelector('progress')

const say: Say = (step, link) => {
  const item = document.createElement('li')
  item.textContent = step
  if (link !== undefined) {
    const anchor = document.createElement('a')
    anchor.href = link
    anchor.textContent = link
    item.append(': ', anchor)
  }
  steps?.append(item)
  if (progress) progress.value += 1
}

const { searchParams } = new URL(location.href)
const service = searchParams.get('service') ?? 'http://localhost:3000'
const network = searchParams.get('network') ?? 'http://localhost:8000/deployment.json'
try {
  await runPayroll(service, network, say)
  if (progress) progress.value = progress.max
} catch (error) {
  say(String(error))
}
